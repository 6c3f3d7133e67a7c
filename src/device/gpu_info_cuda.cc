#include <cuda_runtime_api.h>

#include "device/gpu_info.h"

namespace sluice::device {
namespace {

// CUDA writes 12.8 as 12080.
std::string version_text(int version) {
  return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

}  // namespace

std::vector<GpuInfo> list_gpus() {
  int count = 0;
  if (cudaGetDeviceCount(&count) != cudaSuccess) {
    cudaGetLastError();  // a missing driver or GPU is an answer; a later call must not find it as an error
    return {};
  }
  std::vector<GpuInfo> gpus;
  for (int device = 0; device < count; ++device) {
    cudaDeviceProp properties{};
    if (cudaGetDeviceProperties(&properties, device) != cudaSuccess) {
      cudaGetLastError();
      continue;
    }
    gpus.push_back({properties.name, properties.totalGlobalMem, properties.major, properties.minor});
  }
  return gpus;
}

std::string gpu_runtime() {
  int runtime = 0, driver = 0;
  cudaRuntimeGetVersion(&runtime);
  const std::string text = "CUDA runtime " + version_text(runtime);
  // 0: no driver is installed.
  if (cudaDriverGetVersion(&driver) != cudaSuccess || driver == 0) return text + ", no driver";
  return text + ", driver for " + version_text(driver);
}

GpuLack gpu_lack() {
  int driver = 0, count = 0;
  const bool has_driver = cudaDriverGetVersion(&driver) == cudaSuccess && driver != 0;
  const bool has_gpu = has_driver && cudaGetDeviceCount(&count) == cudaSuccess && count > 0;
  cudaGetLastError();  // as above
  return !has_driver ? GpuLack::kDriver : !has_gpu ? GpuLack::kGpu : GpuLack::kNothing;
}

}  // namespace sluice::device
