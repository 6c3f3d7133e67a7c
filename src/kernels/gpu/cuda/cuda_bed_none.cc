#include "kernels/gpu/cuda/cuda_bed.h"

namespace sluice::kernels::gpu {

std::unique_ptr<CudaBed> CudaBed::make(Bytes, const GpuKernelOptions&, std::string& why) {
  why = "this program was built without CUDA";
  return nullptr;
}

}  // namespace sluice::kernels::gpu
