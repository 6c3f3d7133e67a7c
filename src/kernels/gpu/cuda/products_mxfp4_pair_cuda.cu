#include "kernels/gpu/cuda/cuda_products.h"

namespace sluice::kernels::gpu {

template <>
template <>
void CudaProducts::run_rows<BlockFormat<Mxfp4PairRow, true>>(ProductItems& items) {
  cut_up<BlockFormat<Mxfp4PairRow, true>>(items);
}

}  // namespace sluice::kernels::gpu
