// What tests of streams and links need.
#pragma once

#include <condition_variable>
#include <mutex>

#include "device/device.h"
#include "device/emulated/emulated_device.h"

namespace sluice::device::testing {

// Keeps a thread at a point of its work until the test lets it go on. Thread-safe.
class Barrier {
 public:
  void stop_here() {
    std::unique_lock lock(mutex_);
    is_there_ = true;
    changed_.notify_all();
    changed_.wait(lock, [&] { return open_; });
  }
  void wait_until_somebody_is_there() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return is_there_; });
  }
  void open() {
    const std::lock_guard lock(mutex_);
    open_ = true;
    changed_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool is_there_ = false, open_ = false;
};

inline EmulatedOptions unpaced(Bytes memory) {
  EmulatedOptions options;
  options.spec.link_bytes_per_s.reset();
  options.spec.compute_bytes_per_s.reset();
  options.spec.latency_s = 0;
  options.memory = memory;
  return options;
}

}  // namespace sluice::device::testing
