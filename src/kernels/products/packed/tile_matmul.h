// Products of BF16 words and of packed planes where Context::rounds(). See tile_impl.h.
#pragma once

#include <cstddef>

#include "base/bytes.h"
#include "kernels/context.h"
#include "kernels/products/format_kernels.h"

namespace sluice::kernels {

// Bytes of scratch, at most, of products of so many tokens and columns: tiles of all threads together; rows
// and sums of each thread.
struct TileScratch {
  Bytes tiles = 0, panel = 0, sums = 0;
};
TileScratch tile_scratch(const Context& ctx, std::size_t tokens, std::size_t columns);

// The whole product with words of BF16, or with packed planes.
void tile_matmul(const Context& ctx, const Product& product);
// Rows of a product of one token, as ProductDriver::multiply_rows.
bool tile_rows(const Context& ctx, const Product& product, std::size_t begin, std::size_t end);

}  // namespace sluice::kernels
