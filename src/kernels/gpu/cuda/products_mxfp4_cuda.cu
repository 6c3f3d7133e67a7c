#include "kernels/gpu/cuda/cuda_products.h"

namespace sluice::kernels::gpu {

template <>
template <>
void CudaProducts::run_rows<BlockFormat<Mxfp4Row, true>>(ProductItems& items) {
  cut_up<BlockFormat<Mxfp4Row, true>>(items);
}

}  // namespace sluice::kernels::gpu
