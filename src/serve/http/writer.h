// How a request is answered: at once, or bit by bit.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "serve/http/request.h"

namespace sluice::serve::http {

// What the log says about a request.
struct AccessRecord {
  unsigned status = 0;  // 0: nothing was answered
  std::size_t bytes = 0;
  double total_ms = 0;
  std::size_t prompt_tokens = 0, cached_tokens = 0, answer_tokens = 0;
  double queue_ms = 0, prompt_ms = 0, predicted_ms = 0;
  std::string ending;  // "stop", "length", …, or why it was cancelled; empty: nothing was generated
};

// One request with its answer. All but post() is called on the thread that the connection runs on at the
// moment, as handlers, timers and posted work are. What comes too late, because the client has gone, is
// ignored.
class Writer {
 public:
  virtual ~Writer() = default;
  virtual Request& request() = 0;
  virtual AccessRecord& record() = 0;

  virtual void send(Response response) = 0;
  // A stream: begin once, then pieces, then the end.
  virtual void begin(const Response& head) = 0;  // `body` is empty, and its length open
  virtual void write(std::string_view piece) = 0;
  virtual void end(bool close = false) = 0;
  virtual bool begun() const = 0;
  virtual bool gone() const = 0;
  virtual std::size_t unsent() const = 0;  // bytes that wait for the client

  // Called once if the client goes away, or reads too slowly, before the end. "disconnected", "slow reader"
  virtual void on_gone(std::function<void(std::string_view why)> handler) = 0;
  // Called whenever all that was written has been sent, until the end.
  virtual void on_sent(std::function<void()> handler) = 0;
  virtual void post(std::function<void()> work) = 0;  // thread-safe
  // Once, unless the answer has ended by then; a second call replaces the first.
  virtual void after(std::chrono::milliseconds delay, std::function<void()> work) = 0;
};

}  // namespace sluice::serve::http
