#include "kernels/gpu/gpu_kernels-inl.h"
#include "kernels/gpu/gpu_kernels.h"
#include "kernels/gpu/lockstep_launcher.h"

namespace sluice::kernels {

std::unique_ptr<UnitKernels> make_lockstep_kernels(const GpuKernelOptions& options) {
  return std::make_unique<gpu::GpuKernels<gpu::LockstepLauncher>>(gpu::LockstepLauncher(options));
}

}  // namespace sluice::kernels
