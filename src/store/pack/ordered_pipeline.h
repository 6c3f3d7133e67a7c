// Runs jobs that are loaded one after another, worked on by several threads in any order, and finished in
// their original order: load (one reader thread) → work (any of `threads` threads) → finish (the caller's
// thread).
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "base/bytes.h"
#include "base/stop_request.h"

namespace sluice::store {

// How long an interrupt may wait to be seen.
inline constexpr std::chrono::milliseconds kPollTime{25};

template <class Job>
struct Pipeline {
  // Reader thread: describes the next job without loading it; false: there is no further job.
  std::function<bool(Job&)> next;
  // The most that the job takes beside itself, from load to finish.
  std::function<Bytes(const Job&)> memory;
  // load: reader thread; work: worker threads, several jobs at a time. `failed` tells both that a stage has
  // failed: their results are thrown away from then on, and so are their errors.
  std::function<void(Job&, const StopRequest&failed)> load, work;
  std::function<void(Job&)> finish;  // caller's thread, in the order of `next`
  std::function<void()> poll;        // caller's thread, at least every kPollTime; may throw to stop
  unsigned threads = 1;              // workers
  Bytes memory_limit = 0;            // for the jobs between load and finish; one job always passes

  // Returns when every job is finished. The first exception of any stage stops all stages; run() rethrows it
  // after all threads have ended.
  void run();
};

template <class Job>
void Pipeline<Job>::run() {
  struct Slot {
    Job job;
    Bytes bytes = 0;
    bool done = false;
  };
  std::mutex mutex;  // protects everything below
  std::condition_variable room, todo_changed, done_changed;
  std::deque<std::unique_ptr<Slot>> order;  // loaded and not finished, in order
  std::deque<Slot*> todo;                   // loaded and not taken by a worker
  Bytes in_flight = 0;
  bool loaded_all = false;
  std::atomic<bool> stop = false;  // read without the mutex, too
  std::exception_ptr failure;

  const auto fail = [&] {
    const std::lock_guard lock(mutex);
    if (!failure) failure = std::current_exception();
    stop = true;
    room.notify_all();
    todo_changed.notify_all();
    done_changed.notify_all();
  };
  const StopRequest failed = [&] { return stop.load(std::memory_order_relaxed); };
  const auto reader = [&] {
    try {
      for (;;) {
        auto slot = std::make_unique<Slot>();
        if (!next(slot->job)) break;
        slot->bytes = memory(slot->job) + sizeof(Slot);  // jobs may be smaller than what describes them
        {
          std::unique_lock lock(mutex);
          room.wait(lock, [&] { return stop || in_flight == 0 || in_flight + slot->bytes <= memory_limit; });
          if (stop) return;
          in_flight += slot->bytes;
        }
        load(slot->job, failed);
        const std::lock_guard lock(mutex);
        todo.push_back(slot.get());
        order.push_back(std::move(slot));
        todo_changed.notify_one();
      }
    } catch (...) {
      fail();
    }
    const std::lock_guard lock(mutex);
    loaded_all = true;
    todo_changed.notify_all();
    done_changed.notify_all();
  };
  const auto worker = [&] {
    try {
      for (;;) {
        Slot* slot = nullptr;
        {
          std::unique_lock lock(mutex);
          todo_changed.wait(lock, [&] { return stop || loaded_all || !todo.empty(); });
          if (stop || todo.empty()) return;
          slot = todo.front();
          todo.pop_front();
        }
        work(slot->job, failed);
        const std::lock_guard lock(mutex);
        slot->done = true;
        if (!order.empty() && order.front().get() == slot) done_changed.notify_one();
      }
    } catch (...) {
      fail();
    }
  };

  {
    std::vector<std::jthread> running;
    try {
      running.emplace_back(reader);
      for (unsigned i = 0; i < threads; ++i) running.emplace_back(worker);
      for (;;) {
        std::unique_ptr<Slot> slot;
        {
          std::unique_lock lock(mutex);
          const bool ready = done_changed.wait_for(
              lock, kPollTime, [&] { return stop || (order.empty() ? loaded_all : order.front()->done); });
          if (stop) break;
          if (ready && order.empty()) break;
          if (ready) {
            slot = std::move(order.front());
            order.pop_front();
          }
        }
        if (slot) {
          finish(slot->job);
          const Bytes bytes = slot->bytes;
          slot.reset();
          const std::lock_guard lock(mutex);
          in_flight -= bytes;
          room.notify_one();
        }
        if (poll) poll();
      }
    } catch (...) {
      fail();
    }
  }
  if (failure) std::rethrow_exception(failure);
}

}  // namespace sluice::store
