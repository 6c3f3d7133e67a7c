#include "serve/engine/request_desk.h"

#include <algorithm>
#include <utility>

namespace sluice::serve {

std::optional<RequestId> RequestDesk::submit(std::vector<TextRequest> sequences,
                                             std::shared_ptr<EventQueue> events) {
  const std::lock_guard lock(mutex_);
  if (report_.waiting.size() + messages_.submitted.size() >= queue_ + report_.free_places)
    return std::nullopt;
  const RequestId id = next_++;
  messages_.submitted.push_back({id, std::move(sequences), std::move(events)});
  changed_.notify_one();
  return id;
}

void RequestDesk::cancel(RequestId id) {
  const std::lock_guard lock(mutex_);
  messages_.cancelled.push_back(id);
  changed_.notify_one();
}

void RequestDesk::drain() {
  const std::lock_guard lock(mutex_);
  messages_.drain = true;
  changed_.notify_one();
}

void RequestDesk::stop() {
  const std::lock_guard lock(mutex_);
  messages_.stop = true;
  changed_.notify_one();
}

DeskMessages RequestDesk::take(bool wait, std::chrono::milliseconds most) {
  std::unique_lock lock(mutex_);
  const auto any = [&] {
    return messages_.stop || !messages_.submitted.empty() || !messages_.cancelled.empty();
  };
  if (wait) changed_.wait_for(lock, most, any);
  DeskMessages taken = std::move(messages_);
  messages_ = {.drain = taken.drain, .stop = taken.stop};
  // Until they are reported, places that they take are no longer free.
  for (const NewRequest& request : taken.submitted) report_.waiting.push_back(request.id);
  return taken;
}

void RequestDesk::report(DeskReport report) {
  const std::lock_guard lock(mutex_);
  report_ = std::move(report);
}

std::optional<QueuePlace> RequestDesk::place_of(RequestId id) const {
  const std::lock_guard lock(mutex_);
  const std::size_t known = report_.waiting.size(), of = known + messages_.submitted.size();
  if (const auto at = std::ranges::find(report_.waiting, id); at != report_.waiting.end())
    return QueuePlace{static_cast<std::size_t>(at - report_.waiting.begin()) + 1, of};
  if (const auto at = std::ranges::find(messages_.submitted, id, &NewRequest::id);
      at != messages_.submitted.end())
    return QueuePlace{known + static_cast<std::size_t>(at - messages_.submitted.begin()) + 1, of};
  return std::nullopt;
}

std::vector<SlotState> RequestDesk::slots() const {
  const std::lock_guard lock(mutex_);
  std::vector<SlotState> slots = report_.slots;
  for (const NewRequest& request : messages_.submitted)
    for (const TextRequest& sequence : request.sequences)
      slots.push_back({.id = slots.size(),
                       .task = request.id,
                       .kind = SlotState::Kind::kQueued,
                       .prompt = sequence.prompt.size(),
                       .max_tokens = sequence.max_tokens,
                       .sampling = sequence.sampling});
  return slots;
}

unsigned RequestDesk::retry_after_s() const {
  const std::lock_guard lock(mutex_);
  return std::clamp(report_.next_end_s, 1u, 120u);
}

}  // namespace sluice::serve
