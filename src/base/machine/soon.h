// Waiting for another thread that is probably done in a moment.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#if !defined(__x86_64__)
#include <thread>
#endif

#include "base/machine/thread_pool.h"

namespace sluice {

// A moment in a loop that looks at what another thread is about to change. Does not give the CPU away where
// it can be helped: among threads that compute, who does waits for milliseconds.
inline void pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#else
  std::this_thread::yield();
#endif
}

// Returns when ready() is true, which `lock` protects and after which `changed` is notified. A thread that
// sleeps is woken some 50 µs late on a virtual machine, as long as a GPU computes; so where this process has
// cores for it, the caller first looks for as long as one such sleep costs. The calling thread must not hold
// other locks.
template <class Ready>
void wait_soon(std::unique_lock<std::mutex>& lock, std::condition_variable& changed, const Ready& ready) {
  constexpr std::chrono::microseconds kLook{50};
  constexpr unsigned kCpus = 8;  // with fewer, who looks would be in the way of who works
  static const bool has_cpus = usable_cpus() >= kCpus;
  if (has_cpus) {
    const auto end = std::chrono::steady_clock::now() + kLook;
    while (!ready() && std::chrono::steady_clock::now() < end) {
      lock.unlock();
      for (int i = 0; i < 8; ++i) pause();
      lock.lock();
    }
  }
  changed.wait(lock, ready);
}

}  // namespace sluice
