#include "base/error.h"
#include "kernels/gpu/gpu_kernels.h"

namespace sluice::kernels {

std::unique_ptr<UnitKernels> make_gpu_kernels(device::Device& device, const GpuKernelOptions& options) {
  return make_gpu_kernels(device.memory(), options);
}

std::unique_ptr<UnitKernels> make_gpu_kernels(device::Memory&, const GpuKernelOptions&) {
  throw Error(ErrorKind::kUnsupported, "this program was built without CUDA")
      .fix("configure with -DSLUICE_CUDA=ON");
}

}  // namespace sluice::kernels
