// Products of BF16 words and of packed planes where Context::rounds(). See tile_impl.h.
#pragma once

#include <cstddef>

#include "base/bytes.h"
#include "kernels/context.h"
#include "kernels/products/format_kernels.h"

namespace sluice::kernels {

// Bytes of scratch, at most, of products of this many tokens and columns: tiles of all threads together; rows
// and sums of each thread.
struct TileScratch {
  Bytes tiles = 0, panel = 0, sums = 0;
};
TileScratch tile_scratch(const Context& ctx, std::size_t tokens, std::size_t columns);

// As ProductDriver has them.
struct TileDriver {
  void (*multiply)(const Context& ctx, const Product& product);
  bool (*multiply_rows)(const Context& ctx, const Product& product, std::size_t begin, std::size_t end);
};
extern const TileDriver kWordTiles;    // with words of BF16
extern const TileDriver kPackedTiles;  // with compressed planes of them

}  // namespace sluice::kernels
