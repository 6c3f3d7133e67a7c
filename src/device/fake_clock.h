// A clock that stands still until somebody sleeps. For tests.
#pragma once

#include <algorithm>
#include <cstdint>
#include <mutex>

#include "device/clock.h"

namespace sluice::device::testing {

// Sleeping moves the time on and takes none. Thread-safe.
class FakeClock final : public Clock {
 public:
  Time now() override {
    const std::lock_guard lock(mutex_);
    return now_;
  }
  void sleep_until(Time time) override {
    const std::lock_guard lock(mutex_);
    now_ = std::max(now_, time);
    ++sleeps_;
  }
  void advance(Time time) {
    const std::lock_guard lock(mutex_);
    now_ += time;
  }
  std::uint64_t sleeps() const {
    const std::lock_guard lock(mutex_);
    return sleeps_;
  }
  double seconds() { return std::chrono::duration<double>(now()).count(); }

 private:
  mutable std::mutex mutex_;  // protects all below
  Time now_{0};
  std::uint64_t sleeps_ = 0;
};

}  // namespace sluice::device::testing
