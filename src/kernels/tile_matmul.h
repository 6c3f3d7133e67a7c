// matmul() and packed_matmul() where Context::rounds(): same arguments and errors. See tile_impl.h.
#pragma once

#include <cstddef>
#include <span>

#include "kernels/context.h"
#include "kernels/matmul.h"
#include "kernels/packed_matmul.h"

namespace sluice::kernels {

// REQUIRES: BF16 weights.
void tile_matmul(const Context& ctx, const float* packed, std::size_t tokens, const Weight& w,
                 std::span<const float> bias, float* y, std::size_t y_stride);
void tile_matmul(const Context& ctx, const float* packed, std::size_t tokens, const PackedWeight& w,
                 std::span<const float> bias, float* y, std::size_t y_stride);

}  // namespace sluice::kernels
