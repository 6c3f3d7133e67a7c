// What kernels of products take: several products of one format at a time, each with the rows that it makes.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/dtype.h"
#include "kernels/gpu/warp.h"

namespace sluice::kernels::gpu {

// What becomes of the sums of a row.
enum class ProductForm : std::uint32_t {
  kPlain,    // they are the output
  kSilu,     // silu(side 0) · side 1
  kRelu,     // max(side 0, 0)
  kClamped,  // clamped_mul() of side 0 and side 1
};

SLUICE_GPU_HOST constexpr bool is_paired(ProductForm form) {
  return form == ProductForm::kSilu || form == ProductForm::kClamped;
}

struct PackedChunk;  // packed_chunks.h

// A matrix whose rows 0, row_step, 2 · row_step … are multiplied.
struct ProductSide {
  const std::byte* planes[2];
  const float* bias;          // null: none
  std::uint32_t first_chunk;  // for packed planes: in the launch's table
};

struct ProductItem {
  ProductSide sides[2];
  const float* x;  // (tokens, floats of `columns`), arranged
  // Plain: row t at y + t · y_stride. Otherwise arranged for a product with `rows` columns, zeros at its end.
  float* y;
  std::uint64_t y_stride;
  std::uint32_t rows, columns, tokens;  // rows: of the output
  std::uint32_t row_step;
  std::uint32_t first_warp;  // this product's, in the launch
  ProductForm form;
  float limit, alpha;  // for kClamped
  DType type;          // for words that lie anywhere
  bool aligned;        // to 16 bytes: everything that a kernel reads
};

// This many fit a launch's parameters.
inline constexpr std::uint32_t kProductItems = 28;
struct ProductItems {
  std::uint32_t count;
  std::uint32_t* fault;
  const PackedChunk* chunks;  // for packed matrices: their tables, one after the other
  ProductItem items[kProductItems];
};
static_assert(sizeof(ProductItems) <= 3840);

SLUICE_GPU_HOST constexpr std::uint32_t ceil_div(std::uint32_t a, std::uint32_t b) { return (a + b - 1) / b; }
SLUICE_GPU_HOST constexpr std::uint32_t arranged_columns(std::uint32_t columns) {
  return ceil_div(columns, 64) * 64;
}

// Where the warps of a product work: tiles of outputs by tiles of tokens. Eight warps that follow each
// other, a block of the GPU, have neighbouring tiles, so that they find each other's operands in their
// cache.
struct ProductTiles {
  std::uint32_t rows, tokens;  // tiles

  SLUICE_GPU_HOST constexpr std::uint32_t warps() const {
    return tokens == 1 ? ceil_div(rows, 8) * 8 : ceil_div(rows, 2) * ceil_div(tokens, 4) * 8;
  }
  SLUICE_GPU_HOST constexpr std::uint32_t row_tile(std::uint32_t warp) const {
    return tokens == 1 ? warp : warp / 8 / ceil_div(tokens, 4) * 2 + warp % 2;
  }
  SLUICE_GPU_HOST constexpr std::uint32_t token_tile(std::uint32_t warp) const {
    return tokens == 1 ? 0 : warp / 8 % ceil_div(tokens, 4) * 4 + warp % 8 / 2;
  }
};

SLUICE_GPU_HOST const ProductItem& item_of(const ProductItems& items, std::uint64_t warp) {
  std::uint32_t i = 0;
  while (i + 1 < items.count && warp >= items.items[i + 1].first_warp) ++i;
  return items.items[i];
}

}  // namespace sluice::kernels::gpu
