// GPUs of this machine, for reports (cuda/gpu_info.cc).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/bytes.h"

namespace sluice::device {

struct GpuInfo {
  std::string name;  // "NVIDIA H200"
  Bytes memory = 0;  // of the device, used or not
  int compute_major = 0, compute_minor = 0;
  std::optional<Bytes> free = {};  // none: without NVML it cannot be known
};

// Empty without a driver, without a GPU, and in a build without CUDA. Creates no context, so that it takes no
// device memory.
std::vector<GpuInfo> list_gpus();

// What this build can use, in words: "CUDA runtime 13.0, driver for 12.8", "CUDA runtime 13.0, no driver",
// "built without CUDA".
std::string gpu_runtime();

}  // namespace sluice::device
