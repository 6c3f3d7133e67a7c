// matmul() and packed_matmul() where Context::rounds(): same arguments and errors. See tile_impl.h.
#pragma once

#include <cstddef>
#include <span>

#include "base/bytes.h"
#include "kernels/context.h"
#include "kernels/products/packed/packed_matmul.h"
#include "kernels/products/words/matmul.h"

namespace sluice::kernels {

// Bytes of scratch, at most, of products of so many tokens and columns: tiles of all threads together; rows
// and sums of each thread.
struct TileScratch {
  Bytes tiles = 0, panel = 0, sums = 0;
};
TileScratch tile_scratch(const Context& ctx, std::size_t tokens, std::size_t columns);

// REQUIRES: BF16 weights.
void tile_matmul(const Context& ctx, const float* packed, std::size_t tokens, const Weight& w,
                 std::span<const float> bias, float* y, std::size_t y_stride);
void tile_matmul(const Context& ctx, const float* packed, std::size_t tokens, const PackedWeight& w,
                 std::span<const float> bias, float* y, std::size_t y_stride);

}  // namespace sluice::kernels
