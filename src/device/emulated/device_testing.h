// What tests of streams and links need.
#pragma once

#include <gtest/gtest.h>

#include <condition_variable>
#include <cstddef>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

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

// Each kind of device, with some memory.
class EachDevice : public ::testing::TestWithParam<std::string> {
 protected:
  EachDevice() {
    if (GetParam() == "host") {
      device_ = make_host_device(accountant_);
    } else {
      EmulatedOptions options = unpaced(4 * kMiB);
      if (GetParam() == "emulated_unmapped") options.guard = Guard::kUnmapped;
      device_ = make_emulated_device(std::move(options));
    }
  }

  std::vector<std::byte> content(const Block& block) {
    std::vector<std::byte> bytes(block.size());
    device_->link().copy_back(block.address(), bytes, Traffic::kResult).event().wait();
    return bytes;
  }

  Accountant accountant_{16 * kMiB};
  std::unique_ptr<Device> device_;
};

inline const auto kDevices = ::testing::Values("host", "emulated", "emulated_unmapped");
inline std::string device_name(const ::testing::TestParamInfo<std::string>& info) { return info.param; }

}  // namespace sluice::device::testing
