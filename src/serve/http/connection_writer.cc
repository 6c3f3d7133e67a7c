#include "serve/http/connection_writer.h"

#include <fmt/format.h>
#include <boost/asio/post.hpp>

#include "serve/http/status_text.h"

namespace sluice::serve::http {

ConnectionWriter::ConnectionWriter(std::shared_ptr<Connection> connection, std::unique_ptr<Request> request,
                                   bool keep)
    : connection_(std::move(connection)),
      strand_(connection_->strand()),
      shared_(connection_->shared()),
      request_(std::move(request)),
      timer_(strand_),
      keep_(keep) {}

std::string ConnectionWriter::head_text(const Response& response, bool whole) {
  const bool keep = keep_ && !response.close;
  std::string text =
      fmt::format("HTTP/1.{} {} {}\r\nServer: {}\r\nx-request-id: {}\r\n", request_->version == 10 ? 0 : 1,
                  response.status, status_text(response.status), shared_->server_name, request_->id);
  const bool empty = response.status == 204 || response.status == 304;
  if (!response.content_type.empty() && !empty) text += "Content-Type: " + response.content_type + "\r\n";
  if (!whole) {
    if (chunked_) text += "Transfer-Encoding: chunked\r\n";
  } else if (!empty) {
    text += fmt::format("Content-Length: {}\r\n", response.body.size());
  }
  for (const auto& [name, value] : response.headers) text += name + ": " + value + "\r\n";
  for (const auto& [name, value] : request_->answer_headers) text += name + ": " + value + "\r\n";
  if (!keep) {
    text += "Connection: close\r\n";
  } else if (request_->version == 10) {
    text += "Connection: keep-alive\r\n";
  }
  return text + "\r\n";
}

void ConnectionWriter::send(Response response) {
  if (gone() || begun_) return;
  begun_ = true;
  if (!connection_->has_room(response.body.size()))
    response = shared_->application.on_fault(request_.get(), HttpFault::kNoRoom,
                                             "there is no memory for an answer of this length");
  record_.status = response.status;
  std::string text = head_text(response, true);
  if (request_->method != "HEAD") text += response.body;
  response.body = {};
  connection_->put(text);
  if (gone()) return;
  release(keep_ && !response.close);
}

void ConnectionWriter::begin(const Response& head) {
  if (gone() || begun_) return;
  begun_ = true;
  record_.status = head.status;
  chunked_ = request_->version == 11;
  connection_->put(head_text(head, false));
}

void ConnectionWriter::write(std::string_view piece) {
  if (gone() || piece.empty() || request_->method == "HEAD") return;
  // One piece may be larger, if there is memory for it.
  if (connection_->unsent() > 0 && connection_->unsent() + piece.size() > shared_->limits.unsent_bytes) {
    connection_->drop("slow reader");
    return;
  }
  if (!chunked_) return connection_->put(piece);
  std::string chunk = fmt::format("{:x}\r\n", piece.size());
  chunk += piece;
  chunk += "\r\n";
  connection_->put(chunk);
}

void ConnectionWriter::end(bool close) {
  if (gone()) return;
  if (chunked_ && request_->method != "HEAD") connection_->put("0\r\n\r\n");
  if (gone()) return;
  release(keep_ && chunked_ && !close);
}

void ConnectionWriter::release(bool keep) {
  timer_.cancel();
  on_gone_ = nullptr;
  on_sent_ = nullptr;
  const std::shared_ptr<Connection> connection = std::move(connection_);
  connection_ = nullptr;
  connection->finished(keep);
}

void ConnectionWriter::post(std::function<void()> work) {
  boost::asio::post(strand_, [self = shared_from_this(), work = std::move(work)] { work(); });
}

void ConnectionWriter::after(std::chrono::milliseconds delay, std::function<void()> work) {
  timer_.expires_after(delay);
  timer_.async_wait([self = shared_from_this(), work = std::move(work)](boost::system::error_code error) {
    if (!error && !self->gone()) work();
  });
}

void ConnectionWriter::sent() {
  // The handler may end the answer, and with it itself.
  if (const auto handler = on_sent_) handler();
}

void ConnectionWriter::lose(std::string_view why) {
  if (gone()) return;
  timer_.cancel();
  on_sent_ = nullptr;
  connection_ = nullptr;
  if (record_.ending.empty()) record_.ending = why;
  if (const auto handler = std::exchange(on_gone_, nullptr)) handler(why);
  done();
}

void ConnectionWriter::done() {
  if (std::exchange(told_, true)) return;
  const std::chrono::duration<double, std::milli> total = std::chrono::steady_clock::now() - since_;
  record_.total_ms = total.count();
  shared_->application.on_done(*request_, record_);
}

}  // namespace sluice::serve::http
