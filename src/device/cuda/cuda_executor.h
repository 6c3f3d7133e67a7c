// How operations of a stream run on a GPU.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "device/access.h"
#include "device/cuda/cuda_calls.h"
#include "device/cuda/cuda_owned.h"
#include "device/pacer.h"
#include "device/queue_stream.h"

namespace sluice::device {

// What the streams of a GPU have computed: operations, and seconds by the GPU's own clock, in which its queue
// was worked on from a first launch until the next record() or wait. Where two streams compute at once,
// both count. Thread-safe.
class CudaBusy {
 public:
  void add(std::uint64_t operations, double seconds) {
    const std::lock_guard lock(mutex_);
    counters_.pieces += operations;
    counters_.busy_s += seconds;
  }
  LaneCounters counters() const {
    const std::lock_guard lock(mutex_);
    return counters_;
  }

 private:
  mutable std::mutex mutex_;  // protects counters_
  LaneCounters counters_;
};

// Operations launch on a queue of their own, and the stream's thread goes on; another thread sleeps until the
// GPU has come to what a signal stands behind. References must outlive it.
class CudaExecutor final : public Executor {
 public:
  CudaExecutor(CudaCalls& calls, Gate& gate, CudaBusy& busy);
  ~CudaExecutor() override;  // waits for what was begun

  void report_to(Report report) override { report_ = std::move(report); }
  void admit_this_thread() override { gate_.admit_this_thread(); }
  void run(const Operation& operation, Clock::Time ready) override;
  void finish(Signal signal, const std::optional<Error>& error) override;
  bool follows() const override { return true; }
  void follow(const std::shared_ptr<void>& mark, const Event& event) override;
  void pause() override;
  void forget() override;

 private:
  // Launches between two marks.
  struct Batch {
    CudaMark begin = nullptr, end = nullptr;  // no end: it is over
    std::uint64_t operations = 0;
    std::optional<Signal> signal;
    std::optional<Error> error;  // that the signal carries
    std::vector<Event> after;    // that the queue has waited for
  };

  void close(Batch batch);
  void wait_for_batches();
  void end(Batch& batch);
  void await(Batch& batch);
  void take_errors_of(const std::vector<Event>& after);
  void found(const Error& error);

  CudaCalls& calls_;
  Gate& gate_;
  CudaBusy& busy_;
  Report report_;
  MarkPool marks_;
  MappedWord fault_;
  OwnedQueue queue_;
  Batch open_;        // the stream's thread's own, as begin, operations
  std::mutex mutex_;  // protects all below
  std::condition_variable changed_;
  std::deque<Batch> batches_;
  std::optional<Error> found_;  // and reported
  bool stop_ = false;
  std::thread waiter_;
};

}  // namespace sluice::device
