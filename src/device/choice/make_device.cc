#include "device/choice/make_device.h"

#include <fmt/format.h>

#include <utility>

#include "base/error.h"
#include "base/setting.h"
#include "device/cuda/cuda_device.h"
#include "device/cuda/cuda_facts.h"
#include "device/emulated/emulated_device.h"

namespace sluice::device {
namespace {

Error no_gpu(ErrorKind kind, std::string_view message) { return Error(kind, message).in(Setting::kDevice); }

}  // namespace

std::string hardware_text(std::string_view name, int compute_major, int compute_minor) {
  return fmt::format("{}, compute {}.{}", name, compute_major, compute_minor);
}

void check_is_there(const CudaSpec& spec, GpuLack lack, std::span<const GpuInfo> gpus) {
  const std::string asked = fmt::format("a CUDA device {}", spec.index);
  switch (lack) {
    case GpuLack::kCuda:
      throw no_gpu(ErrorKind::kUnsupported, "this program was built without CUDA")
          .expected("a build with it")
          .found("one for the host alone")
          .fix("build with -DSLUICE_CUDA=ON (docs/devices.md), or leave " + Setting::kDevice + " out");
    case GpuLack::kDriver:
      throw no_gpu(ErrorKind::kUnsupported, "there is no driver for CUDA devices")
          .expected("NVIDIA's driver")
          .found("none that answers")
          .fix("install the driver, or in a container pass the GPU on; or leave " + Setting::kDevice +
               " out");
    case GpuLack::kGpu:
      throw no_gpu(ErrorKind::kNotFound, "there is no CUDA device")
          .expected(asked)
          .found("none: the driver shows this process no GPU")
          .fix("see what CUDA_VISIBLE_DEVICES says and nvidia-smi lists, or leave " + Setting::kDevice +
               " out");
    case GpuLack::kNothing:
      break;
  }
  if (spec.index < gpus.size()) return;
  std::string there;
  for (std::size_t i = 0; i < gpus.size(); ++i)
    there += fmt::format("{}cuda:{} ({})", i == 0 ? "" : ", ", i,
                         hardware_text(gpus[i].name, gpus[i].compute_major, gpus[i].compute_minor));
  throw no_gpu(ErrorKind::kNotFound, "there is no such CUDA device")
      .expected(gpus.size() == 1 ? "cuda:0" : fmt::format("cuda:0 to cuda:{}", gpus.size() - 1))
      .found(fmt::format("cuda:{}", spec.index))
      .fix("name one that is there: " + there);
}

DeviceFacts device_facts(const DeviceSpec& spec) {
  const CudaSpec* const gpu = spec.cuda();
  if (gpu == nullptr) return {};
  check_is_there(*gpu, gpu_lack(), list_gpus());
  const CudaFacts facts = cuda_facts({.index = static_cast<int>(gpu->index)});
  return {.hardware = hardware_text(facts.name, facts.compute_major, facts.compute_minor),
          .context = facts.context,
          .free = facts.context + facts.free};
}

std::unique_ptr<Device> make_device(const DeviceSpec& spec, DeviceOptions options) {
  if (const CudaSpec* const gpu = spec.cuda()) {
    CudaOptions cuda;
    cuda.index = static_cast<int>(gpu->index);
    cuda.memory = options.memory;
    cuda.link_bytes_per_s = gpu->link_bytes_per_s;
    cuda.host = options.host;
    cuda.fault = std::move(options.fault);
    return make_cuda_device(std::move(cuda));
  }
  EmulatedOptions emulated;
  emulated.spec = *spec.emulated();
  emulated.memory = options.memory;
  emulated.fault = std::move(options.fault);
  return make_emulated_device(std::move(emulated));
}

FoundDevice find_device() {
  const GpuLack lack = gpu_lack();
  if (lack != GpuLack::kNothing) return {.why = std::string(gpu_lack_text(lack))};
  return {.spec = CudaSpec{}};
}

}  // namespace sluice::device
