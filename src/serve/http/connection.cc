#include "serve/http/connection.h"

#include <boost/asio/bind_executor.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/dispatch.hpp>
#include <boost/asio/post.hpp>
#include <utility>

#include "serve/http/connection_writer.h"
#include "serve/http/request_id.h"

namespace sluice::serve::http {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;

constexpr std::size_t kMostAhead = 16 << 10;  // kept of what comes while an answer goes
// A refused request's body is read to its end if it is small, so that the connection can go on.
constexpr std::size_t kMostSkipped = 64 << 10;
constexpr std::size_t kFreeSending = 4 << 10;  // to be sent, contained in kConnectionBytes

}  // namespace

Connection::Connection(asio::io_context& io, Socket socket, std::shared_ptr<ServerShared> shared,
                       std::string peer)
    : socket_(std::move(socket)),
      strand_(asio::make_strand(io)),
      shared_(std::move(shared)),
      peer_(std::move(peer)),
      share_(shared_->room),
      body_share_(shared_->room),
      sending_share_(shared_->answers),
      deadline_(strand_),
      stall_(strand_) {
  ++shared_->counters.connections;
}

Connection::~Connection() {
  shared_->remove(this);
  --shared_->counters.connections;
}

void Connection::start(bool too_many) {
  asio::dispatch(strand_, [self = shared_from_this(), too_many] {
    if (too_many || !self->share_.grow(kConnectionBytes))
      return self->fail(HttpFault::kTooManyConnections, "too many connections are open");
    self->set_deadline(Deadline::kHead);
    self->read();
  });
}

void Connection::shut() {
  asio::post(strand_, [self = shared_from_this()] { self->drop("stopped"); });
}

// ---- Reading

void Connection::read() {
  if (reading_ || state_ == State::kClosed || half_closed_) return;
  if (state_ == State::kAnswering && in_.size() >= kMostAhead) return;
  reading_ = true;
  socket_.async_read_some(
      asio::buffer(chunk_),
      asio::bind_executor(strand_, [self = shared_from_this()](error_code error, std::size_t bytes) {
        self->on_read(error, bytes);
      }));
}

void Connection::on_read(error_code error, std::size_t bytes) {
  reading_ = false;
  if (state_ == State::kClosed) return;
  if (error) {
    half_closed_ = true;
    if (state_ == State::kAnswering && answered_) return;  // the rest is sent; then it closes
    return drop("disconnected");
  }
  if (state_ == State::kLingering) return read();
  in_.append(chunk_.data(), bytes);
  if (state_ == State::kAnswering) return read();
  if (state_ == State::kReading && parser_ && parser_->stage() == RequestParser::Stage::kBody)
    set_deadline(Deadline::kBody);
  advance();
  read();
}

void Connection::advance() {
  while ((state_ == State::kIdle || state_ == State::kReading) && !in_.empty()) {
    if (state_ == State::kIdle) {
      state_ = State::kReading;
      parser_.emplace(shared_->limits);
      set_deadline(Deadline::kHead);
    }
    const bool head = parser_->stage() == RequestParser::Stage::kHead;
    const std::size_t taken = parser_->put(in_);
    in_.erase(0, taken);
    const RequestParser::Stage stage = parser_->stage();
    if (stage == RequestParser::Stage::kFault) return fail(parser_->fault(), parser_->fault_text());
    if (head && stage != RequestParser::Stage::kHead) {
      on_head();
    } else if (stage == RequestParser::Stage::kBody && !charge_body(taken)) {
      return;
    }
    if (state_ == State::kReading && parser_->stage() == RequestParser::Stage::kDone) return on_request();
    if (taken == 0) return;
  }
}

std::unique_ptr<Request> Connection::take_request() {
  auto request = std::make_unique<Request>(parser_ ? std::move(parser_->request()) : Request{});
  if (request->id.empty()) request->id = new_request_id();
  request->peer = peer_;
  return request;
}

void Connection::on_head() {
  Request& request = parser_->request();
  request.id = new_request_id();
  request.peer = peer_;
  if (!parser_->has_body()) return;
  refusal_ = shared_->application.on_head(request);
  const bool small = parser_->length() > 0 && parser_->length() <= kMostSkipped;
  if (refusal_ && !(small && !parser_->expects_continue())) return refuse(std::move(*refusal_), true);
  if (!body_share_.grow(parser_->length()))
    return fail(HttpFault::kNoRoom,
                "there is no memory for a body of " + std::to_string(parser_->length()) + " bytes");
  if (parser_->expects_continue() && in_.empty()) put("HTTP/1.1 100 Continue\r\n\r\n");
  set_deadline(Deadline::kBody);
}

// A body in chunks is charged as it comes.
bool Connection::charge_body(std::size_t taken) {
  if (parser_->length() > 0 || body_share_.grow(taken)) return true;
  fail(HttpFault::kNoRoom, "there is no memory for a longer body");
  return false;
}

void Connection::on_request() {
  set_deadline(Deadline::kNone);
  if (!parser_->has_body()) refusal_ = shared_->application.on_head(parser_->request());
  if (refusal_) {
    Response response = std::move(*refusal_);
    return refuse(std::move(response), false);
  }
  state_ = State::kAnswering;
  answered_ = false;
  parser_->request().complete = std::chrono::steady_clock::now();
  const bool keep = parser_->keep_alive() && ++requests_ < shared_->limits.requests;
  writer_ = std::make_shared<ConnectionWriter>(shared_from_this(), take_request(), keep);
  const std::shared_ptr<ConnectionWriter> writer = writer_;
  shared_->application.on_request(writer);
}

// Answers without the application.
void Connection::refuse(Response response, bool close) {
  set_deadline(Deadline::kNone);
  state_ = State::kAnswering;
  answered_ = false;
  refusal_.reset();
  const bool keep = !close && parser_ && parser_->keep_alive() && ++requests_ < shared_->limits.requests;
  writer_ = std::make_shared<ConnectionWriter>(shared_from_this(), take_request(), keep);
  const std::shared_ptr<ConnectionWriter> writer = writer_;
  writer->send(std::move(response));
}

void Connection::fail(HttpFault fault, std::string_view text) {
  const bool has_head = parser_ && !parser_->request().method.empty();
  if (has_head && parser_->request().id.empty()) parser_->request().id = new_request_id();
  Response response = shared_->application.on_fault(has_head ? &parser_->request() : nullptr, fault, text);
  refuse(std::move(response), true);
}

// ---- Sending

void Connection::put(std::string_view bytes) {
  if (state_ == State::kClosed) return;
  if (!charge_sending(unsent() + bytes.size())) return drop("no memory");
  waiting_ += bytes;
  send();
}

bool Connection::has_room(std::size_t bytes) { return charge_sending(unsent() + bytes); }

bool Connection::charge_sending(std::size_t bytes) {
  if (bytes <= kFreeSending) return true;
  while (sending_share_.bytes() < bytes && !sending_share_.resize(bytes))
    if (!shared_->make_room || !shared_->make_room()) return false;
  return true;
}

void Connection::send() {
  if (in_flight_ || state_ == State::kClosed) return;
  if (sent_ == sending_.size()) {
    sending_.clear();
    sending_.swap(waiting_);
    sent_ = 0;
    if (sending_.empty()) {
      if (sending_share_.bytes() > 0) {
        sending_ = {};
        waiting_ = {};
        sending_share_.clear();
      }
      return next();
    }
  }
  in_flight_ = true;
  watch_stall();
  socket_.async_write_some(
      asio::buffer(sending_.data() + sent_, sending_.size() - sent_),
      asio::bind_executor(strand_, [self = shared_from_this()](error_code error, std::size_t bytes) {
        self->on_sent(error, bytes);
      }));
}

void Connection::on_sent(error_code error, std::size_t bytes) {
  in_flight_ = false;
  if (state_ == State::kClosed) return;
  stall_.cancel();
  if (error) return drop("disconnected");
  sent_ += bytes;
  shared_->counters.bytes_sent += bytes;
  if (writer_) writer_->record().bytes += bytes;
  send();
}

void Connection::watch_stall() {
  stall_.expires_after(shared_->limits.stall);
  stall_.async_wait(asio::bind_executor(strand_, [self = shared_from_this()](error_code error) {
    if (!error && self->in_flight_) self->drop("slow reader");
  }));
}

void Connection::finished(bool keep) {
  answered_ = true;
  close_after_ = !keep;
  send();
}

void Connection::next() {
  if (state_ == State::kAnswering && !answered_ && writer_) {
    const std::shared_ptr<ConnectionWriter> writer = writer_;
    return writer->sent();
  }
  if (state_ != State::kAnswering || !answered_) return;
  if (const auto writer = std::exchange(writer_, nullptr)) writer->done();
  answered_ = false;
  if (half_closed_) return close();
  if (close_after_) return linger();
  parser_.reset();
  body_share_.clear();
  state_ = State::kIdle;
  set_deadline(Deadline::kIdle);
  // Not at once: many requests that came together would nest.
  asio::post(strand_, [self = shared_from_this()] {
    if (self->state_ == State::kClosed) return;
    self->advance();
    self->read();
  });
}

// ---- Ending

// Closing while bytes of the client are unread would reset the connection, and with it what it has not yet
// received.
void Connection::linger() {
  state_ = State::kLingering;
  error_code ignored;
  socket_.shutdown(asio::socket_base::shutdown_send, ignored);
  set_deadline(Deadline::kLinger);
  read();
}

void Connection::drop(std::string_view why) {
  if (state_ == State::kClosed) return;
  const auto writer = std::exchange(writer_, nullptr);
  close();
  if (!writer) return;
  writer->lose(why);
  writer->done();
}

void Connection::close() {
  state_ = State::kClosed;
  deadline_.cancel();
  stall_.cancel();
  parser_.reset();
  body_share_.clear();
  if (!in_flight_) {
    sending_ = {};
    waiting_ = {};
    sending_share_.clear();
  }
  error_code ignored;
  socket_.close(ignored);
}

void Connection::set_deadline(Deadline deadline) {
  deadline_kind_ = deadline;
  const HttpLimits& limits = shared_->limits;
  switch (deadline) {
    case Deadline::kNone:
      deadline_.cancel();
      return;
    case Deadline::kIdle:
      deadline_.expires_after(limits.idle);
      break;
    case Deadline::kHead:
      deadline_.expires_after(limits.head);
      break;
    case Deadline::kBody:
      deadline_.expires_after(limits.body);
      break;
    case Deadline::kLinger:
      deadline_.expires_after(limits.linger);
      break;
  }
  deadline_.async_wait(asio::bind_executor(strand_, [self = shared_from_this()](error_code error) {
    if (!error && self->deadline_.expiry() <= std::chrono::steady_clock::now()) self->on_deadline();
  }));
}

void Connection::on_deadline() {
  if (state_ == State::kClosed || deadline_kind_ == Deadline::kNone) return;
  if (state_ != State::kReading) return drop("idle");
  const bool body = deadline_kind_ == Deadline::kBody;
  fail(HttpFault::kTimeout, body ? "the body did not come in time" : "the headers did not come in time");
}

}  // namespace sluice::serve::http
