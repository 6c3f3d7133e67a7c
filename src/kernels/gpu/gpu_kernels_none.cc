#include "base/error.h"
#include "kernels/gpu/gpu_kernels.h"

namespace sluice::kernels {

std::unique_ptr<UnitKernels> make_gpu_kernels(device::Device& device, Bytes room) {
  return make_gpu_kernels(device.memory(), room);
}

std::unique_ptr<UnitKernels> make_gpu_kernels(device::Memory&, Bytes) {
  throw Error(ErrorKind::kUnsupported, "this program was built without CUDA")
      .fix("configure with -DSLUICE_CUDA=ON");
}

}  // namespace sluice::kernels
