#include "kernels/gpu/cuda/cuda_products.h"

namespace sluice::kernels::gpu {

template <>
void CudaProducts::run_fast(ProductItems& items) {
  cut_up_fast(items);
}

}  // namespace sluice::kernels::gpu
