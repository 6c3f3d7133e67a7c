#include "device/gpu_info.h"

#include <algorithm>
#include <utility>

#include "device/cuda/cuda_facts.h"

namespace sluice::device {
namespace {

// CUDA writes 12.8 as 12080.
std::string version_text(int version) {
  return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

}  // namespace

std::vector<GpuInfo> list_gpus() {
  CudaApi* const api = cuda_api();
  if (api == nullptr) return {};
  return list_gpus_of(*api, open_nvml().get());
}

std::vector<GpuInfo> list_gpus_of(CudaApi& api, GpuMemoryUse* use) {
  int count = 0;
  if (api.count(count) != 0) {
    api.last_error();  // a missing driver or GPU is an answer; a later call must not find it as an error
    return {};
  }
  std::vector<GpuInfo> gpus;
  for (int index = 0; index < count; ++index) {
    CudaProperties found;
    if (api.properties(index, found) != 0) {
      api.last_error();
      continue;
    }
    GpuInfo gpu{found.name, found.memory, found.compute_major, found.compute_minor, {}};
    if (const std::optional<Bytes> used = use != nullptr ? use->used(found.bus_id) : std::nullopt)
      gpu.free = found.memory - std::min(*used, found.memory);
    gpus.push_back(std::move(gpu));
  }
  return gpus;
}

std::string gpu_runtime() {
  CudaApi* const api = cuda_api();
  return api != nullptr ? gpu_runtime_of(*api) : "built without CUDA";
}

GpuLack gpu_lack() {
  CudaApi* const api = cuda_api();
  return api != nullptr ? gpu_lack_of(*api) : GpuLack::kCuda;
}

GpuLack gpu_lack_of(CudaApi& api) {
  int runtime = 0, driver = 0, count = 0;
  const bool has_driver = api.versions(runtime, driver) == 0 && driver != 0;
  const bool has_gpu = has_driver && api.count(count) == 0 && count > 0;
  if (!has_gpu) api.last_error();  // as above
  return !has_driver ? GpuLack::kDriver : !has_gpu ? GpuLack::kGpu : GpuLack::kNothing;
}

std::string gpu_runtime_of(CudaApi& api) {
  int runtime = 0, driver = 0;
  const CudaCode code = api.versions(runtime, driver);
  if (code != 0) api.last_error();
  const std::string text = "CUDA runtime " + version_text(runtime);
  if (code != 0 || driver == 0) return text + ", no driver";
  return text + ", driver for " + version_text(driver);
}

}  // namespace sluice::device
