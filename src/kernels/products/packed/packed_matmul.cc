#include "kernels/products/packed/packed_matmul.h"

#include <algorithm>
#include <atomic>
#include <optional>
#include <string>

#include "base/error.h"
#include "base/machine/thread_pool.h"
#include "kernels/kernel_table.h"
#include "kernels/products/format_kernels.h"
#include "kernels/products/packed/packed_groups.h"
#include "kernels/products/packed/packed_impl.h"
#include "kernels/products/packed/tile_matmul.h"
#include "kernels/products/vector_products_impl.h"
#include "kernels/products/words/matmul.h"
#include "kernels/split.h"

namespace sluice::kernels {
namespace {

using codec::kTileRows;

void prefetch(const std::byte* bytes, std::uint64_t count) {
  for (std::uint64_t at = 0; at < count; at += 64) __builtin_prefetch(bytes + at, 0, 2);
}

// The parts of a product, for one range of its rows.
struct Ranges {
  const Context& ctx;
  const FormatKernels& kernels;
  const Product& product;
  codec::TileShape shape;

  // Computes the whole range. False if a chunk is damaged.
  bool multiply(std::size_t begin, std::size_t end) const {
    const bool few = product.tokens <= kFewPacked && kernels.few != nullptr;
    return few ? out_of_registers(begin, end) : by_way_of_words(begin, end);
  }

  bool out_of_registers(std::size_t begin, std::size_t end) const {
    std::byte* const scratch = packed_scratch(ctx, shape);
    PackedGroups groups(product.w);
    float out[kFewPacked * kTileRows];
    for (std::size_t row = begin; row < end; row += kTileRows) {
      const PackedGroup group = groups.at(row / kTileRows, scratch);
      if (!kernels.few({group, product.x, arranged_floats(shape.columns), product.tokens, out})) return false;
      const std::size_t rows = std::min(kTileRows, shape.rows - row);
      for (std::size_t t = 0; t < product.tokens; ++t) {
        for (std::size_t r = 0; r < rows; ++r)
          product.y[t * product.y_stride + row + r] =
              product.bias.empty() ? out[t * kTileRows + r]  // adding 0 would lose a -0
                                   : out[t * kTileRows + r] + product.bias[row + r];
      }
    }
    return true;
  }

  bool by_way_of_words(std::size_t begin, std::size_t end) const {
    const std::size_t row_bytes = codec::kFormatBf16.plane_bytes({1, shape.columns}, 0);
    std::byte* const words = scratch_room(ctx, Room::kPanel, kTileRows * row_bytes);
    std::byte* const scratch = packed_scratch(ctx, shape);
    const codec::NativeKernels& native = codec::native_kernels(ctx.isa);
    const std::uint64_t places = shape.group_places();
    PackedGroups groups(product.w);
    ProductArgs args =
        product_args(product, product.x, arranged_floats(shape.columns), product.tokens, nullptr);
    args.planes[0] = words;
    args.row_bytes = row_bytes;
    args.ahead_bytes = 0;
    for (std::size_t row = begin; row < end; row += kTileRows) {
      const std::size_t rows = std::min(kTileRows, shape.rows - row);
      const PackedGroup group = groups.at(row / kTileRows, scratch);
      if (row + kTileRows < shape.rows) {  // memory works while this group is computed with
        prefetch(group.sign_mantissas + places, places);
        if (group.coded)
          prefetch(group.group.tier1 + places / 4, places / 4);
        else
          prefetch(group.exponents + places, places);
        prefetch(group.next_lists, group.next_lists_bytes);
      }
      if (!merge_group(native, group, rows, shape.columns, words)) return false;
      args.bias = product.bias.empty() ? nullptr : product.bias.data() + row;
      args.y = product.y + row;
      kernels.rows(args, 0, rows);
    }
    return true;
  }
};

void multiply(const Context& ctx, const FormatKernels& kernels, const Product& product) {
  if (ctx.rounds()) return kPackedTiles.multiply(ctx, product);
  const codec::TileShape shape = tiles_of(product.w);
  const Ranges ranges{ctx, kernels, product, shape};
  std::atomic<bool> damaged = false;
  split(ctx, shape.rows, kTileRows, product.tokens * shape.rows * shape.columns,
        [&](std::size_t begin, std::size_t end) {
          if (!ranges.multiply(begin, end)) damaged = true;
        });
  if (damaged) throw_damaged();
}

bool multiply_rows(const Context& ctx, const FormatKernels& kernels, const Product& product,
                   std::size_t begin, std::size_t end) {
  if (ctx.rounds()) return kPackedTiles.multiply_rows(ctx, product, begin, end);
  return Ranges{ctx, kernels, product, tiles_of(product.w)}.multiply(begin, end);
}

}  // namespace

constinit const ProductDriver kPackedProducts = {multiply, multiply_rows, false};

bool is_damaged_weight(const Error& error) {
  return error.kind() == ErrorKind::kCorrupt && error.where().empty();
}

constinit const PackedKernels kPackedNone = {};

bool multiplies_packed(Isa isa) { return format_row({}, &codec::kFormatPacked).of(isa).few != nullptr; }

}  // namespace sluice::kernels
