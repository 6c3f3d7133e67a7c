// A stream that is a queue and a thread: what is done in its turn, and what after an error. How an operation
// is computed is the unit's.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
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

  // For this many tokens a product takes as long as for one: its weights are read once. docs/devices.md.
  static constexpr double kTokensFree = 32;
  // Seconds that the operation is to take; none: its real ones.
  std::optional<double> modelled(const Operation& operation) const;
};

// What a stream does with what it comes to. The stream's thread calls it.
class Executor {
 public:
  using Report = std::function<void(const Error& error)>;

  virtual ~Executor() = default;
  // Once, before all others, on the thread that makes the stream. What goes wrong with an operation after
  // run() has returned is reported; thread-safe.
  virtual void report_to(Report report) = 0;
  virtual void admit_this_thread() = 0;
  // Does the operation, which was ready at `ready`, or begins it. Throws what is wrong with it.
  virtual void run(const Operation& operation, Clock::Time ready) = 0;
  // Completes the signal when all that was begun is over: with `error`, or else with what was reported.
  virtual void finish(Signal signal, const std::optional<Error>& error) = 0;
  // Whether follow() can be asked. It has what is run from now on begin behind a mark of the device that
  // stands before `event`; what that event carries in the end, signals behind it carry, too. Throws what is
  // wrong.
  virtual bool follows() const { return false; }
  virtual void follow(const std::shared_ptr<void>& /*mark*/, const Event& /*event*/) {}
  virtual void pause() {}   // the stream waits for an event now
  virtual void forget() {}  // what was reported has been thrown; any thread
};

// Operations are functions of this program. References must outlive it.
class FunctionExecutor final : public Executor {
 public:
  FunctionExecutor(Gate& gate, Arithmetic& arithmetic) : gate_(gate), arithmetic_(arithmetic) {}
  void report_to(Report) override {}
  void admit_this_thread() override { gate_.admit_this_thread(); }
  void run(const Operation& operation, Clock::Time ready) override;
  void finish(Signal signal, const std::optional<Error>& error) override;

 private:
  Gate& gate_;
  Arithmetic& arithmetic_;
};

// References must outlive it.
class QueueStream final : public Stream {
 public:
  QueueStream(std::unique_ptr<Executor> executor, Clock& clock, Health& health);
  QueueStream(Gate& gate, Arithmetic& arithmetic, Health& health);  // with a FunctionExecutor
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
  struct Passage {
    std::optional<Clock::Time> done_at;  // none until this stream's hook of the event has run
    std::shared_ptr<void> mark;          // null: the unit does not know yet when the event will be done
    bool is_open() const { return done_at.has_value() || mark != nullptr; }
  };
  struct Waiting {
    Event event;
    std::shared_ptr<Passage> passage;  // shared with those hooks
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
  void sleep(std::unique_lock<std::mutex>& lock);  // until there is something to do
  bool can_go_on() const;                          // the first item may be done
  void process(Item& item);
  void compute(Work& work);
  void pass(const Waiting& waiting);
  void guarded(const std::function<void()>& work);  // what it throws is the stream's error
  std::optional<Error> error() const;
  void set_error(const Error& error);

  std::unique_ptr<Executor> executor_;  // null when it has stopped
  Clock& clock_;
  Health& health_;
  std::shared_ptr<Wake> wake_;  // shared with those hooks
  std::deque<Item> queue_;
  std::optional<Error> error_;
  bool stop_ = false;
  Clock::Time ready_{0};  // when the last event that was waited for was done; the thread's own
  std::thread thread_;
};

}  // namespace sluice::device
