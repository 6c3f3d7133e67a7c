// Which stored matrices a GPU multiplies with.
#pragma once

#include <span>

#include "codec/matrix_format.h"

namespace sluice::kernels {

std::span<const codec::MatrixFormat* const> gpu_formats();
bool gpu_multiplies(const codec::MatrixFormat& format);
// Also with their rows as columns: matmul_transposed().
bool gpu_multiplies_transposed(const codec::MatrixFormat& format);

}  // namespace sluice::kernels
