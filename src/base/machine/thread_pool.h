// The compute threads of one engine. The pool is passed by reference and never global, so that two engines
// can run in one process.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>

#include "base/function_ref.h"

namespace sluice {

// parallel_for runs on `threads` threads, the caller's included; idle workers sleep (never spin for long).
// Thread-compatible: one thread calls parallel_for at a time; calls do not nest. An exception thrown by
// `body` is rethrown by parallel_for after all indices that had started have finished.
class ThreadPool {
 public:
  explicit ThreadPool(unsigned threads);  // ≥ 1; threads − 1 workers are started
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  unsigned threads() const;
  // The number of the calling thread: 1 to threads() - 1 of this pool's workers, 0 of any other thread.
  unsigned worker() const;
  // Calls body(i) once for every i in [0, count), in any order. Which thread runs an index is not determined.
  void parallel_for(std::size_t count, FunctionRef<void(std::size_t)> body);
  // Work for idle workers between parallel calls: `try_one` does one short piece and returns true, or finds
  // no work and returns false; several workers may call it at the same time. `try_one` must not throw or use
  // this pool. An empty function ends background work and waits until no worker is inside. Do not call while
  // another thread is in parallel_for.
  void set_background(std::function<bool()> try_one);
  // Says that at most `pieces` pieces of background work have arrived. Any thread.
  void wake_background(std::size_t pieces);
  // Calls body(begin, end) over contiguous ranges that cover [0, count); every boundary is a multiple of
  // `grain`.
  void parallel_ranges(std::size_t count, std::size_t grain,
                       FunctionRef<void(std::size_t, std::size_t)> body);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// CPUs this process may run on (affinity mask and cgroup quota, at least 1).
unsigned usable_cpus();

}  // namespace sluice
