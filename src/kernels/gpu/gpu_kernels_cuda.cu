#include "kernels/gpu/cuda/cuda_products.h"
#include "kernels/gpu/gpu_kernels-inl.h"
#include "kernels/gpu/gpu_kernels.h"

namespace sluice::kernels {

std::unique_ptr<UnitKernels> make_gpu_kernels(device::Device& device, const GpuKernelOptions& options) {
  return make_gpu_kernels(device.memory(), options);
}

std::unique_ptr<UnitKernels> make_gpu_kernels(device::Memory& memory, const GpuKernelOptions& options) {
  return std::make_unique<gpu::GpuKernels<gpu::CudaLauncher>>(gpu::CudaLauncher(memory, options));
}

}  // namespace sluice::kernels
