#include "base/error.h"
#include "kernels/gpu/gpu_kernels.h"

namespace sluice::kernels {

std::unique_ptr<UnitKernels> make_gpu_kernels(device::Device& device, DeviceMath math) {
  return make_gpu_kernels(device.memory(), math);
}

std::unique_ptr<UnitKernels> make_gpu_kernels(device::Memory&, DeviceMath) {
  throw Error(ErrorKind::kUnsupported, "this program was built without CUDA")
      .fix("configure with -DSLUICE_CUDA=ON");
}

}  // namespace sluice::kernels
