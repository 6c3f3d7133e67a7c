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

}  // namespace sluice::kernels::gpu
