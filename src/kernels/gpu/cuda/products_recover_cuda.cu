#include "kernels/gpu/cuda/cuda_products.h"

namespace sluice::kernels::gpu {

template <>
void CudaProducts::run_recover(RecoverItems& items, bool aligned) {
  cut_up_recover(items, aligned);
}

}  // namespace sluice::kernels::gpu
