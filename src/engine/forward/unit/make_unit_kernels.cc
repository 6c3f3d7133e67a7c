#include "engine/forward/unit/make_unit_kernels.h"

#include "base/machine/thread_pool.h"
#include "device/first_fit.h"
#include "kernels/gpu/gpu_kernels.h"
#include "kernels/ops/function_kernels.h"

namespace sluice::engine {

using kernels::FunctionKernels;

std::unique_ptr<kernels::UnitKernels> make_unit_kernels(const device::DeviceSpec& spec,
                                                        device::Device& device, const UnitParts& parts,
                                                        kernels::DeviceMath math) {
  if (!spec.is_played()) return kernels::make_gpu_kernels(device, {.room = parts.recover_room, .math = math});
  return std::make_unique<FunctionKernels>(device.memory(), device.pool(), parts.kernels, parts.scratch);
}

Bytes unit_kernel_bytes(const device::DeviceSpec& spec, const UnitParts& parts) {
  if (!spec.is_played()) return kernels::kGpuListBytes + device::FirstFit::cost(parts.recover_room);
  ThreadPool like_the_devices(spec.threads());
  return FunctionKernels::scratch_bytes(like_the_devices, parts.kernels, parts.scratch);
}

}  // namespace sluice::engine
