// One connection of the HTTP server. Read by the two files of this folder that know Asio, and by no others.
#pragma once

#include <array>
#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/strand.hpp>
#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "serve/http/application.h"
#include "serve/http/http_server.h"
#include "serve/http/request_parser.h"
#include "serve/http/room.h"

namespace sluice::serve::http {

class Connection;
class ConnectionWriter;

// What all connections share.
struct ServerShared {
  ServerShared(Application& app, const HttpLimits& http_limits, std::string name)
      : application(app),
        limits(http_limits),
        server_name(std::move(name)),
        room(http_limits.room_bytes),
        answers(http_limits.room_bytes / 2, &room) {}
  void add(const std::shared_ptr<Connection>& connection);
  void remove(Connection* connection);

  Application& application;
  const HttpLimits limits;
  const std::string server_name;
  Room room;     // for connections, bodies and answers
  Room answers;  // for answers alone: slow readers leave room for new requests
  HttpCounters counters;
  std::function<bool()> make_room;  // frees memory that is less important than an answer's; may be empty
  std::mutex mutex;
  std::unordered_map<Connection*, std::weak_ptr<Connection>> connections;
};

// All members but shut() run on the connection's strand.
class Connection : public std::enable_shared_from_this<Connection> {
 public:
  using Socket = boost::asio::generic::stream_protocol::socket;

  Connection(boost::asio::io_context& io, Socket socket, std::shared_ptr<ServerShared> shared,
             std::string peer);
  ~Connection();
  void start(bool too_many);  // one too many is answered so, and closed
  void shut();                // thread-safe: closes at once

  // For its writer.
  void put(std::string_view bytes);
  bool has_room(std::size_t bytes);  // for an answer of this length
  std::size_t unsent() const { return waiting_.size() + sending_.size() - sent_; }
  void finished(bool keep);         // the writer's answer is complete
  void drop(std::string_view why);  // the client is lost: closes
  boost::asio::strand<boost::asio::io_context::executor_type> strand() const { return strand_; }
  const std::shared_ptr<ServerShared>& shared() const { return shared_; }

 private:
  enum class State { kIdle, kReading, kAnswering, kLingering, kClosed };
  enum class Deadline { kNone, kIdle, kHead, kBody, kLinger };

  void read();
  void on_read(boost::system::error_code error, std::size_t bytes);
  void advance();  // makes requests of what has been read
  void on_head();
  bool charge_body(std::size_t taken);
  void on_request();
  void refuse(Response response, bool close);
  void fail(HttpFault fault, std::string_view text);
  bool charge_sending(std::size_t bytes);
  void send();
  void on_sent(boost::system::error_code error, std::size_t bytes);
  void next();  // the answer has been sent
  void linger();
  void close();
  void set_deadline(Deadline deadline);
  void on_deadline();
  void watch_stall();
  std::unique_ptr<Request> take_request();

  Socket socket_;
  const boost::asio::strand<boost::asio::io_context::executor_type> strand_;
  const std::shared_ptr<ServerShared> shared_;
  const std::string peer_;
  RoomShare share_, body_share_, sending_share_;
  boost::asio::steady_timer deadline_, stall_;
  Deadline deadline_kind_ = Deadline::kNone;
  std::optional<RequestParser> parser_;
  std::optional<Response> refusal_;  // to be sent when the rest of a small body has been read
  std::shared_ptr<ConnectionWriter> writer_;
  State state_ = State::kIdle;
  std::size_t requests_ = 0;
  bool reading_ = false, close_after_ = false, answered_ = false, half_closed_ = false;
  std::array<char, 8192> chunk_;
  std::string in_;                 // read, and not yet parsed
  std::string waiting_, sending_;  // to be sent; in flight
  std::size_t sent_ = 0;           // bytes of `sending_`
  bool in_flight_ = false;
};

}  // namespace sluice::serve::http
