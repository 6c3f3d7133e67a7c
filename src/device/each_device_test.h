// The kinds of devices, for tests of what all of them promise.
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "device/cuda/cuda_device.h"
#include "device/cuda/fake_cuda.h"
#include "device/device.h"
#include "device/emulated/device_testing.h"

namespace sluice::device::testing {

// Why no real GPU can be tested; empty if one can.
inline std::string why_no_gpu() {
  CudaApi* const api = cuda_api();
  if (api == nullptr) return "this program was built without CUDA";
  int gpus = 0;
  const CudaCode code = api->count(gpus);
  if (code == 0 && gpus > 0) return {};
  api->last_error();
  return code == 0 ? "CUDA finds no GPU" : "CUDA finds no GPU: " + api->text(code);
}

// Each kind of device, with some memory. "fake_gpu" is make_cuda_device with calls that are played; "gpu" is
// a real one, where there is one.
class EachDevice : public ::testing::TestWithParam<std::string> {
 protected:
  EachDevice() {
    if (GetParam() == "host") {
      device_ = make_host_device(accountant_);
    } else if (GetParam() == "fake_gpu") {
      device_ = make_cuda_device({.memory = 4 * kMiB, .host = &accountant_, .api = &fake_cuda_});
    } else if (GetParam() == "gpu") {
      device_ = make_cuda_device({.memory = 4 * kMiB, .host = &accountant_});
    } else {
      EmulatedOptions options = unpaced(4 * kMiB);
      if (GetParam() == "emulated_unmapped") options.guard = Guard::kUnmapped;
      device_ = make_emulated_device(std::move(options));
    }
  }
  ~EachDevice() override {
    device_.reset();
    EXPECT_EQ(fake_cuda_.left(), "");
  }

  std::vector<std::byte> content(const Block& block) {
    std::vector<std::byte> bytes(block.size());
    device_->link().copy_back(block.address(), bytes, Traffic::kResult).event().wait();
    return bytes;
  }
  // Whether an operation that is a function of a test reaches the device's memory.
  bool functions_reach_memory() const { return GetParam() != "gpu"; }

  Accountant accountant_{16 * kMiB};
  FakeCuda fake_cuda_;
  std::unique_ptr<Device> device_;
};

inline std::vector<std::string> devices() {
  std::vector<std::string> names = {"host", "emulated", "emulated_unmapped", "fake_gpu"};
  if (why_no_gpu().empty()) names.emplace_back("gpu");
  return names;
}
inline std::string device_name(const ::testing::TestParamInfo<std::string>& info) { return info.param; }

}  // namespace sluice::device::testing
