// An event says when something has been done: an operation of a stream, a copy of a link, or a job of the
// host, which says so by a signal.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "base/error.h"

namespace sluice::device {

// A view of something under way; copies are views of the same. It is done once, with or without an error.
// Thread-safe.
class Event {
 public:
  Event() = default;  // an event of nothing: done, without an error
  bool done() const;
  std::optional<Error> error() const;  // none while it is not done
  // Sleeps until it is done, for as long as that takes; throws its error.
  void wait() const;
  // Calls `hook` once when it is done, on the thread that completes it; now, on this thread, if it is done
  // already. A hook must not throw or wait.
  using Hook = std::function<void(const std::optional<Error>& error)>;
  void on_done(Hook hook) const;
  // Calls `hook` once if a mark of the device stands behind the work before that is done, as on_done() does.
  using QueuedHook = std::function<void(const std::shared_ptr<void>& mark)>;
  void on_queued(QueuedHook hook) const;
  // Is done together with this one, and never with an error: for those who only want the work to be over.
  Event settled() const;

 private:
  friend class Signal;
  struct State;
  explicit Event(std::shared_ptr<State> state) : state_(std::move(state)) {}

  std::shared_ptr<State> state_;  // shared by all views and the signal: each may be the last to go
};

// Is done when all of these are; carries the error of the first of the list that has one.
Event all_of(std::vector<Event> events);

// The owner of an event, which completes it. Move-only. An event whose signal goes without completing it
// carries Error(kInterrupted), so that nothing waits for ever. Thread-compatible.
class Signal {
 public:
  Signal();
  Signal(Signal&& other) noexcept;
  Signal& operator=(Signal&& other) noexcept;
  ~Signal();

  Event event() const { return Event(state_); }
  // The work is queued on the device, with this mark behind it, in terms of the device's own interface: what
  // is queued there, too, can wait for that. The mark lives until nobody holds it any more. At most once,
  // before the event is done.
  void queued(std::shared_ptr<void> mark);
  // One of these, once. Hooks run before it returns.
  void complete() { end(std::nullopt); }
  void fail(const Error& error) { end(error); }

 private:
  void end(const std::optional<Error>& error);
  void abandon();

  std::shared_ptr<Event::State> state_;
};

}  // namespace sluice::device
