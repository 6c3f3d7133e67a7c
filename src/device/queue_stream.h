// A stream that is a queue and a thread: the stream of every unit whose operations are functions of this
// program.
#pragma once

#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <variant>

#include "device/access.h"
#include "device/health.h"
#include "device/pacer.h"
#include "device/stream.h"

namespace sluice::device {

// What computes: one operation at a time, whichever stream it comes from.
struct Arithmetic {
  explicit Arithmetic(Clock& clock) : pacer(clock) {}
  std::mutex mutex;  // held while an operation runs and is paced
  Pacer pacer;
  // Bytes of weights a second that a product reads for up to kTokensFree tokens; none: as fast as it goes.
  std::optional<double> bytes_per_s;

  // For so many tokens a product takes as long as for one: its weights are read once. docs/devices.md.
  static constexpr double kTokensFree = 32;
  // Seconds that the operation is to take; none: its real ones.
  std::optional<double> modelled(const Operation& operation) const;
};

// References must outlive it.
class QueueStream final : public Stream {
 public:
  QueueStream(Gate& gate, Arithmetic& arithmetic, Health& health);
  ~QueueStream() override;

  void enqueue(Operation operation) override;
  void wait(const Event& event) override;
  Event record() override;
  void synchronize() override;

 private:
  struct Work {
    Operation operation;
    Clock::Time ready;  // when it was enqueued
  };
  struct Waiting {
    Event event;
    // None until this stream's hook of the event has run. Shared with that hook.
    std::shared_ptr<std::optional<Clock::Time>> done_at;
  };
  using Item = std::variant<Work, Waiting, Signal>;

  // What the hooks of events that the queue waits for may touch, even when the stream has gone.
  struct Wake {
    std::mutex mutex;  // protects all below, and the stream's queue_, error_ and stop_
    std::condition_variable changed;
    Clock* clock;  // null: the stream has gone
  };

  void push(Item item);
  void run();
  bool can_go_on() const;  // the first item may be done
  void process(Item& item);
  void compute(Work& work);
  std::optional<Error> error() const;
  void set_error(const Error& error);

  Gate& gate_;
  Arithmetic& arithmetic_;
  Health& health_;
  std::shared_ptr<Wake> wake_;  // shared with those hooks
  std::deque<Item> queue_;
  std::optional<Error> error_;
  bool stop_ = false;
  Clock::Time ready_{0};  // when the last event that was waited for was done; the thread's own
  std::thread thread_;
};

}  // namespace sluice::device
