// The events of one request on their way from the engine's thread to the thread that sends them.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <mutex>
#include <vector>

#include "serve/answer_event.h"

namespace sluice::serve {

// Thread-safe. The engine's thread pushes and never waits for more than a copy of pointers; another thread
// takes. Bounded: whoever does not take in time loses the request, not the engine.
class EventQueue {
 public:
  static constexpr std::size_t kMostBytes = std::size_t{1} << 20;

  explicit EventQueue(std::size_t most_bytes = kMostBytes) : most_bytes_(most_bytes) {}

  // False if the queue is full or closed: the request is to be cancelled. A Finish or a Failure always fits.
  bool push(AnswerEvent event);

  // All that is there, in order.
  std::vector<AnswerEvent> take();
  // Called, on the thread that pushes, when events come into an empty queue; must not wait, and must not call
  // the queue. At once, on the calling thread, if events are there already. Empty: nobody is called any more.
  void set_wake(std::function<void()> wake);
  // Nobody takes any more.
  void close();

  bool overflowed() const;
  std::size_t bytes() const;  // about what it holds

 private:
  mutable std::mutex mutex_;
  const std::size_t most_bytes_;
  std::size_t bytes_ = 0;
  bool closed_ = false, overflowed_ = false;
  std::vector<AnswerEvent> events_;
  std::function<void()> wake_;
};

}  // namespace sluice::serve
