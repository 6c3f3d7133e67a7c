// Operands of the self checks: the same at every start.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/dtype.h"
#include "codec/matrix_format.h"

namespace sluice::kernels {

// Numbers in ±2 with busy low bits, so that another order of sums shows. A fixed sequence.
std::vector<float> sample(std::size_t n, std::uint64_t seed);

// The upper halves of fp32 numbers are BF16 words; read as binary16 they are other numbers of a similar size.
std::vector<std::byte> weights_of(DType dtype, std::size_t n, std::uint64_t seed = 1);

// A plane of a matrix in blocks of codes.
std::vector<std::byte> blocks_of(const codec::MatrixFormat& format, codec::MatrixShape shape,
                                 std::size_t plane);

}  // namespace sluice::kernels
