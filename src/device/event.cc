#include "device/event.h"

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <utility>
#include <vector>

#include "base/machine/soon.h"

namespace sluice::device {

struct Event::State {
  std::mutex mutex;  // protects all below
  std::condition_variable changed;
  bool done = false;
  std::optional<Error> error;
  std::vector<Hook> hooks;     // none once it is done …
  std::shared_ptr<void> mark;  // … nor these
  std::vector<QueuedHook> queued_hooks;
};

bool Event::done() const {
  if (state_ == nullptr) return true;
  const std::lock_guard lock(state_->mutex);
  return state_->done;
}

std::optional<Error> Event::error() const {
  if (state_ == nullptr) return std::nullopt;
  const std::lock_guard lock(state_->mutex);
  return state_->error;
}

void Event::wait() const {
  if (state_ == nullptr) return;
  std::unique_lock lock(state_->mutex);
  wait_soon(lock, state_->changed, [&] { return state_->done; });
  if (state_->error) throw Error(*state_->error);
}

void Event::on_done(Hook hook) const {
  std::optional<Error> error;
  if (state_ != nullptr) {
    const std::lock_guard lock(state_->mutex);
    if (!state_->done) {
      state_->hooks.push_back(std::move(hook));
      return;
    }
    error = state_->error;
  }
  hook(error);
}

void Event::on_queued(QueuedHook hook) const {
  if (state_ == nullptr) return;
  std::shared_ptr<void> mark;
  {
    const std::lock_guard lock(state_->mutex);
    if (state_->done) return;
    if (state_->mark == nullptr) {
      state_->queued_hooks.push_back(std::move(hook));
      return;
    }
    mark = state_->mark;
  }
  hook(mark);
}

Event Event::settled() const {
  auto signal = std::make_shared<Signal>();  // shared, because std::function copies what it holds
  const Event event = signal->event();
  on_done([signal](const std::optional<Error>&) { signal->complete(); });
  return event;
}

Event all_of(std::vector<Event> events) {
  // Shared by the hooks of all events; the last to be done completes it.
  struct All {
    Signal signal;
    std::vector<Event> events;
    std::atomic<std::size_t> left;
  };
  std::erase_if(events, [](const Event& event) { return event.done() && !event.error(); });
  if (events.empty()) return {};
  if (events.size() == 1) return events.front();
  const auto all = std::make_shared<All>();
  all->left = events.size();
  all->events = events;
  const Event event = all->signal.event();
  for (const Event& one : events)
    one.on_done([all](const std::optional<Error>&) {
      if (--all->left > 0) return;
      const std::vector<Event> done = std::exchange(all->events, {});
      for (const Event& each : done)
        if (const std::optional<Error> error = each.error()) return all->signal.fail(*error);
      all->signal.complete();
    });
  return event;
}

Signal::Signal() : state_(std::make_shared<Event::State>()) {}

Signal::Signal(Signal&& other) noexcept : state_(std::exchange(other.state_, nullptr)) {}

Signal& Signal::operator=(Signal&& other) noexcept {
  if (this != &other) {
    abandon();
    state_ = std::exchange(other.state_, nullptr);
  }
  return *this;
}

Signal::~Signal() { abandon(); }

void Signal::abandon() {
  if (state_ == nullptr) return;
  {
    const std::lock_guard lock(state_->mutex);
    if (state_->done) return;
  }
  end(Error(ErrorKind::kInterrupted, "work on a device was given up"));
}

void Signal::queued(std::shared_ptr<void> mark) {
  SLUICE_CHECK(state_ != nullptr && mark != nullptr);
  std::vector<Event::QueuedHook> hooks;
  {
    const std::lock_guard lock(state_->mutex);
    SLUICE_CHECK(!state_->done && state_->mark == nullptr, "an event is queued twice, or when it is done");
    state_->mark = mark;
    hooks.swap(state_->queued_hooks);
  }
  for (const Event::QueuedHook& hook : hooks) hook(mark);
}

void Signal::end(const std::optional<Error>& error) {
  SLUICE_CHECK(state_ != nullptr, "the signal has been moved from");
  std::vector<Event::Hook> hooks;
  std::vector<Event::QueuedHook> dropped;
  std::shared_ptr<void> mark;  // goes without the lock
  {
    const std::lock_guard lock(state_->mutex);
    SLUICE_CHECK(!state_->done, "an event is done twice");
    mark.swap(state_->mark);
    dropped.swap(state_->queued_hooks);
    state_->done = true;
    state_->error = error;
    hooks.swap(state_->hooks);
    state_->changed.notify_all();
  }
  for (const Event::Hook& hook : hooks) hook(error);
}

}  // namespace sluice::device
