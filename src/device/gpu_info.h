// GPUs of this machine (cuda/gpu_info.cc).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"

namespace sluice::device {

struct GpuInfo {
  std::string name;  // "NVIDIA H200"
  Bytes memory = 0;  // all that the device has, used or not
  int compute_major = 0, compute_minor = 0;
  std::optional<Bytes> free = {};  // none: without NVML it cannot be known
};

// Empty without a driver, without a GPU, and in a build without CUDA. Creates no context, so that it takes no
// device memory.
std::vector<GpuInfo> list_gpus();

// What this build can use, in words: "CUDA runtime 13.0, driver for 12.8", "CUDA runtime 13.0, no driver",
// "built without CUDA".
std::string gpu_runtime();

// What a GPU needs to be used: the first of these that is not there, or nothing.
enum class GpuLack : std::uint8_t { kCuda, kDriver, kGpu, kNothing };
// Asks the driver if this build has CUDA, and creates no context.
GpuLack gpu_lack();
// "built without CUDA", "no driver", "no GPU"; empty for kNothing.
constexpr std::string_view gpu_lack_text(GpuLack lack) {
  switch (lack) {
    case GpuLack::kCuda:
      return "built without CUDA";
    case GpuLack::kDriver:
      return "no driver";
    case GpuLack::kGpu:
      return "no GPU";
    case GpuLack::kNothing:
      break;
  }
  return "";
}

}  // namespace sluice::device
