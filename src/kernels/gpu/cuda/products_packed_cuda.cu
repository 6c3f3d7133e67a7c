#include "kernels/gpu/cuda/cuda_products.h"

namespace sluice::kernels::gpu {

template <>
void CudaProducts::run_packed(ProductItems& items) {
  cut_up_packed(items);
}

}  // namespace sluice::kernels::gpu
