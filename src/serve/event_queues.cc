#include "serve/event_queues.h"

#include <utility>

#include "serve/event_queue.h"

namespace sluice::serve {
namespace {

constexpr std::size_t kWorthIt = 4096;  // bytes of a queue that is emptied for others

}  // namespace

void EventQueues::share(Take take, Give give) {
  take_ = std::move(take);
  give_ = std::move(give);
}

std::shared_ptr<EventQueue> EventQueues::make() {
  auto queue = std::make_shared<EventQueue>(EventQueue::kMostBytes, shared_from_this());
  const std::lock_guard lock(mutex_);
  queues_.insert(queue.get());
  return queue;
}

bool EventQueues::make_room(const EventQueue* asking) {
  const std::lock_guard lock(mutex_);
  EventQueue* longest = nullptr;
  for (EventQueue* queue : queues_)
    if (longest == nullptr || queue->bytes() > longest->bytes()) longest = queue;
  if (longest == nullptr || longest == asking || longest->bytes() < kWorthIt) return false;
  longest->spill();
  return true;
}

void EventQueues::forget(EventQueue* queue) {
  const std::lock_guard lock(mutex_);
  queues_.erase(queue);
}

}  // namespace sluice::serve
