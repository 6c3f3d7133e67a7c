#include "kernels/gpu/lockstep_launcher.h"

#include "kernels/products/packed/packed_groups.h"

namespace sluice::kernels::gpu {

void LockstepLauncher::finish(const device::Access&) {
  if (fault_ == 0) return;
  fault_ = 0;
  throw_damaged();
}

}  // namespace sluice::kernels::gpu
