#include "kernels/products/packed/packed_matmul.h"

#include <algorithm>
#include <atomic>
#include <optional>
#include <string>

#include "base/error.h"
#include "kernels/kernel_table.h"
#include "kernels/products/packed/packed_groups.h"
#include "kernels/products/packed/packed_impl.h"
#include "kernels/products/packed/tile_matmul.h"
#include "kernels/products/vector_products_impl.h"
#include "kernels/products/words/matmul.h"
#include "kernels/products/words/matmul_impl.h"
#include "kernels/split.h"

namespace sluice::kernels {
namespace {

using codec::kTileRows;

void prefetch(const std::byte* bytes, std::uint64_t count) {
  for (std::uint64_t at = 0; at < count; at += 64) __builtin_prefetch(bytes + at, 0, 2);
}

// The parts of a product, for one range of its rows.
struct Product {
  const Context& ctx;
  const float* packed;
  std::size_t tokens;
  const PackedWeight& w;
  std::span<const float> bias;
  float* y;
  std::size_t y_stride;

  // Computes the whole range. False if a chunk is damaged.
  bool multiply(std::size_t begin, std::size_t end) const {
    const bool few = tokens <= kFewPacked && kernel_table(ctx.isa).packed->few != nullptr;
    return few ? out_of_registers(begin, end) : by_way_of_words(begin, end);
  }

  bool out_of_registers(std::size_t begin, std::size_t end) const {
    const auto few = kernel_table(ctx.isa).packed->few;
    std::byte* const scratch = packed_scratch(ctx, w.shape);
    PackedGroups groups(w);
    float out[kFewPacked * kTileRows];
    for (std::size_t row = begin; row < end; row += kTileRows) {
      const PackedGroup group = groups.at(row / kTileRows, scratch);
      if (!few({group, packed, packed_floats(w.shape.columns), tokens, out})) return false;
      const std::size_t rows = std::min(kTileRows, w.shape.rows - row);
      for (std::size_t t = 0; t < tokens; ++t) {
        for (std::size_t r = 0; r < rows; ++r)
          y[t * y_stride + row + r] = bias.empty() ? out[t * kTileRows + r]  // adding 0 would lose a -0
                                                   : out[t * kTileRows + r] + bias[row + r];
      }
    }
    return true;
  }

  bool by_way_of_words(std::size_t begin, std::size_t end) const {
    std::byte* const words = scratch_room(ctx, Room::kPanel, kTileRows * 2 * w.shape.columns);
    std::byte* const scratch = packed_scratch(ctx, w.shape);
    const codec::NativeKernels& native = codec::native_kernels(ctx.isa);
    const auto multiply = kernel_table(ctx.isa).matmul->rows;
    const std::uint64_t places = w.shape.group_places();
    PackedGroups groups(w);
    MatmulArgs args{};
    args.packed = packed;
    args.packed_stride = packed_floats(w.shape.columns);
    args.tokens = tokens;
    args.weights = words;
    args.row_bytes = 2 * w.shape.columns;
    args.dtype = DType::kBF16;
    args.cols = w.shape.columns;
    args.y_stride = y_stride;
    for (std::size_t row = begin; row < end; row += kTileRows) {
      const std::size_t rows = std::min(kTileRows, w.shape.rows - row);
      const PackedGroup group = groups.at(row / kTileRows, scratch);
      if (row + kTileRows < w.shape.rows) {  // memory works while this group is computed with
        prefetch(group.sign_mantissas + places, places);
        if (group.coded)
          prefetch(group.group.tier1 + places / 4, places / 4);
        else
          prefetch(group.exponents + places, places);
        prefetch(group.next_lists, group.next_lists_bytes);
      }
      if (!merge_group(native, group, rows, w.shape.columns, words)) return false;
      args.bias = bias.empty() ? nullptr : bias.data() + row;
      args.y = y + row;
      multiply(args, 0, rows);
    }
    return true;
  }
};

}  // namespace

void packed_matmul(const Context& ctx, const float* packed, std::size_t tokens, const PackedWeight& w,
                   std::span<const float> bias, float* y, std::size_t y_stride) {
  const std::size_t rows = w.shape.rows, columns = w.shape.columns;
  SLUICE_CHECK(bias.empty() || bias.size() == rows, std::to_string(bias.size()));
  SLUICE_CHECK(y_stride >= rows || tokens <= 1, std::to_string(y_stride));
  if (tokens == 0 || rows == 0) return;
  if (ctx.rounds()) return tile_matmul(ctx, packed, tokens, w, bias, y, y_stride);
  const Product product{ctx, packed, tokens, w, bias, y, y_stride};
  std::atomic<bool> damaged = false;
  split(ctx, rows, kTileRows, tokens * rows * columns, [&](std::size_t begin, std::size_t end) {
    if (!product.multiply(begin, end)) damaged = true;
  });
  if (damaged) throw_damaged();
}

bool packed_rows(const Context& ctx, const VectorProduct& product, std::size_t begin, std::size_t end) {
  const PackedWeight& w = product.weight->packed;
  return Product{ctx, product.packed, 1, w, product.bias, product.y, w.shape.rows}.multiply(begin, end);
}

bool is_damaged_weight(const Error& error) {
  return error.kind() == ErrorKind::kCorrupt && error.where().empty();
}

constinit const PackedKernels kPackedNone = {};

bool multiplies_packed(Isa isa) { return kernel_table(isa).packed->few != nullptr; }

}  // namespace sluice::kernels
