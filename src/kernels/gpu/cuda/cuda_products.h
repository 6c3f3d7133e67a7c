// The launches of products of a CUDA device, each format in a file of its own: nvcc takes long with them.
#pragma once

#include "kernels/gpu/cuda/cuda_launcher.h"
#include "kernels/gpu/products/launch_products-inl.h"

namespace sluice::kernels::gpu {

using CudaProducts = ProductLaunches<CudaLauncher>;

template <>
template <>
void CudaProducts::run_rows<WordFormat<DType::kBF16>>(ProductItems& items);
template <>
template <>
void CudaProducts::run_rows<WordFormat<DType::kF16>>(ProductItems& items);
template <>
template <>
void CudaProducts::run_rows<WordFormat<DType::kF32>>(ProductItems& items);
template <>
template <>
void CudaProducts::run_rows<BlockFormat<Q80Row, true>>(ProductItems& items);
template <>
template <>
void CudaProducts::run_rows<BlockFormat<Q4KRow, true>>(ProductItems& items);
template <>
template <>
void CudaProducts::run_rows<BlockFormat<Q6KRow, true>>(ProductItems& items);
template <>
template <>
void CudaProducts::run_rows<BlockFormat<Mxfp4Row, true>>(ProductItems& items);
template <>
template <>
void CudaProducts::run_rows<BlockFormat<Mxfp4PairRow, true>>(ProductItems& items);

template <>
template <>
void CudaProducts::run_anywhere<AnyWordFormat>(ProductItems& items);
template <>
template <>
void CudaProducts::run_anywhere<BlockFormat<Q80Row, false>>(ProductItems& items);
template <>
template <>
void CudaProducts::run_anywhere<BlockFormat<Q4KRow, false>>(ProductItems& items);
template <>
template <>
void CudaProducts::run_anywhere<BlockFormat<Q6KRow, false>>(ProductItems& items);
template <>
template <>
void CudaProducts::run_anywhere<BlockFormat<Mxfp4Row, false>>(ProductItems& items);
template <>
template <>
void CudaProducts::run_anywhere<BlockFormat<Mxfp4PairRow, false>>(ProductItems& items);

template <>
void CudaProducts::run_fast(ProductItems& items);
template <>
void CudaProducts::run_packed(ProductItems& items);
template <>
void CudaProducts::run_packed_anywhere(ProductItems& items);
template <>
void CudaProducts::run_recover(RecoverItems& items, bool aligned);

}  // namespace sluice::kernels::gpu
