// The queues of all requests of a server, which share memory with its connections.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <set>

namespace sluice::serve {

class EventQueue;

// Thread-safe.
class EventQueues : public std::enable_shared_from_this<EventQueues> {
 public:
  using Take = std::function<bool(std::size_t bytes)>;
  using Give = std::function<void(std::size_t bytes)>;

  // Before the first queue is made. Without this, memory is without a limit.
  void share(Take take, Give give);
  std::shared_ptr<EventQueue> make();
  bool take(std::size_t bytes) { return !take_ || take_(bytes); }
  void give(std::size_t bytes) {
    if (give_ && bytes > 0) give_(bytes);
  }
  // Empties the longest queue, whose reader is the slowest; its request is lost. False: there is none that is
  // longer than `asking`, if one is named, and worth it.
  bool make_room(const EventQueue* asking = nullptr);

 private:
  friend class EventQueue;
  void forget(EventQueue* queue);

  Take take_;
  Give give_;
  std::mutex mutex_;
  std::set<EventQueue*> queues_;
};

}  // namespace sluice::serve
