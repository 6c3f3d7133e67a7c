#include "kernels/gpu/cuda/cuda_products.h"

namespace sluice::kernels::gpu {

template <>
template <>
void CudaProducts::run_anywhere<AnyWordFormat>(ProductItems& items) {
  cut_up_anywhere<AnyWordFormat>(items);
}
template <>
template <>
void CudaProducts::run_anywhere<BlockFormat<Q80Row, false>>(ProductItems& items) {
  cut_up_anywhere<BlockFormat<Q80Row, false>>(items);
}
template <>
template <>
void CudaProducts::run_anywhere<BlockFormat<Q4KRow, false>>(ProductItems& items) {
  cut_up_anywhere<BlockFormat<Q4KRow, false>>(items);
}
template <>
template <>
void CudaProducts::run_anywhere<BlockFormat<Q6KRow, false>>(ProductItems& items) {
  cut_up_anywhere<BlockFormat<Q6KRow, false>>(items);
}
template <>
template <>
void CudaProducts::run_anywhere<BlockFormat<Mxfp4Row, false>>(ProductItems& items) {
  cut_up_anywhere<BlockFormat<Mxfp4Row, false>>(items);
}
template <>
template <>
void CudaProducts::run_anywhere<BlockFormat<Mxfp4PairRow, false>>(ProductItems& items) {
  cut_up_anywhere<BlockFormat<Mxfp4PairRow, false>>(items);
}
template <>
void CudaProducts::run_packed_anywhere(ProductItems& items) {
  cut_up_packed_anywhere(items);
}

}  // namespace sluice::kernels::gpu
