#include "kernels/gpu/cuda/cuda_products.h"
#include "kernels/gpu/gpu_kernels-inl.h"
#include "kernels/gpu/gpu_kernels.h"

namespace sluice::kernels {

std::unique_ptr<UnitKernels> make_gpu_kernels(device::Device& device, Bytes room) {
  return make_gpu_kernels(device.memory(), room);
}

std::unique_ptr<UnitKernels> make_gpu_kernels(device::Memory& memory, Bytes room) {
  return std::make_unique<gpu::GpuKernels<gpu::CudaLauncher>>(gpu::CudaLauncher(memory, room));
}

}  // namespace sluice::kernels
