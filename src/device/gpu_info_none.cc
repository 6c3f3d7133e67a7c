#include "device/gpu_info.h"

namespace sluice::device {

std::vector<GpuInfo> list_gpus() { return {}; }

std::string gpu_runtime() { return "built without CUDA"; }

GpuLack gpu_lack() { return GpuLack::kCuda; }

}  // namespace sluice::device
