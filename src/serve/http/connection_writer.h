// The writer of one request on a connection. Read by the files of this folder that know Asio.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "serve/http/connection.h"

namespace sluice::serve::http {

// Holds its connection until the answer has ended, and after that no longer.
class ConnectionWriter final : public Writer, public std::enable_shared_from_this<ConnectionWriter> {
 public:
  ConnectionWriter(std::shared_ptr<Connection> connection, std::unique_ptr<Request> request, bool keep);

  Request& request() override { return *request_; }
  AccessRecord& record() override { return record_; }
  void send(Response response) override;
  void begin(const Response& head) override;
  void write(std::string_view piece) override;
  void end(bool close) override;
  bool begun() const override { return begun_; }
  bool gone() const override { return connection_ == nullptr; }
  void on_gone(std::function<void(std::string_view)> handler) override { on_gone_ = std::move(handler); }
  std::size_t unsent() const override { return gone() ? 0 : connection_->unsent(); }
  void on_sent(std::function<void()> handler) override { on_sent_ = std::move(handler); }
  void post(std::function<void()> work) override;
  void after(std::chrono::milliseconds delay, std::function<void()> work) override;

  void sent();                      // all that was written
  void lose(std::string_view why);  // the client has gone
  void done();                      // tells the application, once

 private:
  std::string head_text(const Response& response, bool whole);
  void release(bool keep);

  std::shared_ptr<Connection> connection_;
  const boost::asio::strand<boost::asio::io_context::executor_type> strand_;
  const std::shared_ptr<ServerShared> shared_;
  const std::unique_ptr<Request> request_;
  const std::chrono::steady_clock::time_point since_ = std::chrono::steady_clock::now();
  AccessRecord record_;
  boost::asio::steady_timer timer_;
  std::function<void(std::string_view)> on_gone_;
  std::function<void()> on_sent_;
  const bool keep_;
  bool begun_ = false, chunked_ = false, told_ = false;
};

}  // namespace sluice::serve::http
