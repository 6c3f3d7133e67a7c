// The events of one request on their way from the engine's thread to the thread that sends them.
#pragma once

#include <chrono>
#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "serve/answer_event.h"
#include "serve/event_queues.h"

namespace sluice::serve {

// Thread-safe. The engine's thread pushes and never waits for more than a copy of pointers; another thread
// takes. The queue is bounded: a taker that is too slow loses its request and does not stop the engine.
class EventQueue {
 public:
  static constexpr std::size_t kMostBytes = std::size_t{1} << 20;

  // `queues`: whose memory it takes; null: nobody's.
  explicit EventQueue(std::size_t most_bytes = kMostBytes, std::shared_ptr<EventQueues> queues = nullptr)
      : most_bytes_(most_bytes), queues_(std::move(queues)) {}
  ~EventQueue();
  EventQueue(const EventQueue&) = delete;
  EventQueue& operator=(const EventQueue&) = delete;

  // False if the queue is closed or spilled, or has no room for the event and is spilled by that: the
  // request is to be cancelled. A Finish or a Failure always fits.
  bool push(AnswerEvent event);

  // What is there, in order: all, or the first events, of about this many bytes.
  std::vector<AnswerEvent> take(std::size_t most = static_cast<std::size_t>(-1));
  // Called, on the thread that pushes, when events come into an empty queue; must not wait, and must not call
  // the queue. At once, on the calling thread, if events are there already. Empty: nobody is called any more.
  void set_wake(std::function<void()> wake);
  // Nobody takes any more.
  void close();
  // Gives its memory back, and is left with a failure.
  void spill();

  bool spilled() const;
  std::size_t bytes() const;  // about what it holds

 private:
  enum class Pushed { kDone, kNoRoom, kNever };
  Pushed try_push(AnswerEvent& event);
  void give_all();

  mutable std::mutex mutex_;
  const std::size_t most_bytes_;
  const std::shared_ptr<EventQueues> queues_;
  std::size_t bytes_ = 0;
  bool closed_ = false, spilled_ = false;
  std::deque<AnswerEvent> events_;
  std::function<void()> wake_;
};

std::size_t bytes_of_event(const AnswerEvent& event);  // about what it takes in memory

}  // namespace sluice::serve
