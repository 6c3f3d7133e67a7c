#include "kernels/gpu/cuda/cuda_products.h"

namespace sluice::kernels::gpu {

template <>
template <>
void CudaProducts::run_rows<BlockFormat<Q4KRow, true>>(ProductItems& items) {
  cut_up<BlockFormat<Q4KRow, true>>(items);
}

}  // namespace sluice::kernels::gpu
