#include "kernels/gpu/cuda/cuda_products.h"

namespace sluice::kernels::gpu {

template <>
template <>
void CudaProducts::run_rows<WordFormat<DType::kF32>>(ProductItems& items) {
  cut_up<WordFormat<DType::kF32>>(items);
}

}  // namespace sluice::kernels::gpu
