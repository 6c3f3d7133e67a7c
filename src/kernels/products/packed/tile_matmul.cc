#include "kernels/products/packed/tile_matmul.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <vector>

#include "base/machine/thread_pool.h"
#include "device/space.h"
#include "kernels/kernel_table.h"
#include "kernels/products/packed/packed_groups.h"
#include "kernels/products/packed/tile_impl.h"
#include "kernels/products/words/matmul.h"
#include "kernels/split.h"

namespace sluice::kernels {
namespace {

using codec::kTileRows;

constexpr std::size_t kPanelRows = 2 * kTileWeights;
constexpr std::size_t kMostTileTokens = 16;

std::size_t row_bytes_of(std::size_t cols) { return (cols + 63) / 64 * 128; }  // in BF16, padded
std::size_t steps_of(std::size_t cols) { return row_bytes_of(cols) / 64; }

// The activations of a block of tokens as tiles, in memory of the calling thread until its next call.
class Block {
 public:
  Block(const Context& ctx, const float* arranged, std::size_t tokens, std::size_t cols)
      : kernels_(tile_kernels(ctx)), tokens_(tokens) {
    const auto* const rows = reinterpret_cast<const std::byte*>(arranged);
    if (tokens == 1) {
      tiles_[0] = {rows, 4, 1};
      return;
    }
    const std::size_t steps = steps_of(cols), row_bytes = arranged_floats(cols) * sizeof(float);
    const std::size_t most = kernels_.tile_tokens, tile_bytes = steps * 64 * most;
    std::byte* const tiles = scratch_room(ctx, Room::kTiles, count() * tile_bytes);
    split(ctx, count(), 1, tokens * cols, [&](std::size_t begin, std::size_t end) {
      for (std::size_t i = begin; i < end; ++i) {
        const std::size_t n = std::min(most, tokens - i * most);
        tiles_[i] = {tiles + i * tile_bytes, 64, n};
        kernels_.interleave(rows + i * most * row_bytes, row_bytes, n, steps, tiles + i * tile_bytes);
      }
    });
  }

  // The most tokens of one block; longer prompts pass over the weights once per block.
  static std::size_t most_tokens(const TileKernels& kernels, std::size_t cols) {
    const std::size_t tokens = kernels.block_bytes / std::max<std::size_t>(1, row_bytes_of(cols));
    return std::clamp(tokens / kernels.tile_tokens, std::size_t{2}, kMostTiles) * kernels.tile_tokens;
  }

  std::size_t count() const { return (tokens_ + kernels_.tile_tokens - 1) / kernels_.tile_tokens; }
  std::size_t tokens() const { return tokens_; }
  const Activations& first() const { return tiles_[0]; }
  // As TileKernels::begin() takes them.
  std::size_t tile_tokens() const { return std::min(tokens_, kernels_.tile_tokens); }

  // Multiplies 16·row_tiles rows of words with all tokens. With `ahead`, prefetches the next kPanelRows rows
  // meanwhile.
  void multiply(const std::byte* rows, std::size_t row_bytes, std::size_t row_tiles, std::size_t steps,
                float* out, std::size_t out_stride, bool ahead) const {
    // Prefetches a part of these rows during each pass over the current rows.
    const std::size_t passes = (count() + 1) / 2, least = kernels_.ahead_rows;
    const std::size_t ahead_each = (kPanelRows + least * passes - 1) / (least * passes) * least;
    for (std::size_t i = 0; i < count(); i += 2) {
      TileArgs args{};
      args.rows = rows;
      args.row_bytes = row_bytes;
      args.row_tiles = row_tiles;
      args.steps = steps;
      args.token_tiles = std::min<std::size_t>(2, count() - i);
      std::copy_n(tiles_ + i, args.token_tiles, args.activations);
      args.out = out + i * kernels_.tile_tokens * out_stride;
      args.out_stride = out_stride;
      const std::size_t ahead_row = std::min(kPanelRows, i / 2 * ahead_each);
      args.ahead = rows + (kPanelRows + ahead_row) * row_bytes;
      args.ahead_rows =
          ahead && tokens_ >= kernels_.ahead_tokens ? std::min(ahead_each, kPanelRows - ahead_row) : 0;
      kernels_.multiply(args);
    }
  }

 private:
  static constexpr std::size_t kMostTiles = 176;
  const TileKernels& kernels_;
  std::size_t tokens_;
  Activations tiles_[kMostTiles];
};

// Where a panel's sums go: directly to y, or through a buffer if the panel has padding rows.
class Output {
 public:
  Output(const Context& ctx, std::span<const float> bias, std::size_t tokens, float* y, std::size_t y_stride)
      : ctx_(ctx), bias_(bias), tokens_(tokens), y_(y), y_stride_(y_stride) {}

  // Calls multiply(out, out_stride) for `rows` rows from `row` on, in tiles, which write `padded` rows.
  template <class Multiply>
  void take(std::size_t row, std::size_t rows, std::size_t padded, const Multiply& multiply) const {
    if (rows == padded) {
      multiply(y_ + row, y_stride_);
    } else {
      auto* const sums =
          reinterpret_cast<float*>(scratch_room(ctx_, Room::kSums, tokens_ * padded * sizeof(float)));
      multiply(sums, padded);
      for (std::size_t t = 0; t < tokens_; ++t)
        std::copy_n(sums + t * padded, rows, y_ + t * y_stride_ + row);
    }
    if (bias_.empty()) return;
    for (std::size_t t = 0; t < tokens_; ++t) {
      for (std::size_t r = row; r < row + rows; ++r) y_[t * y_stride_ + r] += bias_[r];
    }
  }

 private:
  const Context& ctx_;
  std::span<const float> bias_;
  std::size_t tokens_;
  float* y_;
  std::size_t y_stride_;
};

std::byte* panel_room(const Context& ctx, std::size_t cols) {
  return scratch_room(ctx, Room::kPanel, kPanelRows * row_bytes_of(cols));
}

// Calls body(block, output) for one block of tokens at a time.
template <class Body>
void blocks_of_tokens(const Context& ctx, const Product& product, const Body& body) {
  const std::size_t columns = product.w.shape.columns;
  const std::size_t most = Block::most_tokens(tile_kernels(ctx), columns);
  for (std::size_t t = 0; t < product.tokens; t += most) {
    const std::size_t n = std::min(most, product.tokens - t);
    const Block block(ctx, product.x + t * arranged_floats(columns), n, columns);
    body(block, Output(ctx, product.bias, n, product.y + t * product.y_stride, product.y_stride));
  }
}

// One range of the rows of words, for one block of tokens.
class WordRows {
 public:
  WordRows(const Context& ctx, const codec::MatrixRef& w)
      : ctx_(ctx),
        kernels_(tile_kernels(ctx)),
        words_(device::host_space().pointer(w.planes[0])),
        columns_(w.shape.columns),
        row_bytes_(w.format->plane_bytes({1, columns_}, 0)) {}

  // The grain for dividing the rows between threads.
  std::size_t grain(const Block&) const { return kPanelRows; }

  bool multiply(const Block& block, const Output& output, std::size_t begin, std::size_t end) const {
    const std::size_t steps = steps_of(columns_), padded_bytes = row_bytes_of(columns_);
    kernels_.begin(block.tile_tokens());
    for (std::size_t row = begin; row < end; row += kPanelRows) {
      const std::size_t rows = std::min(kPanelRows, end - row);
      const std::size_t row_tiles = (rows + kTileWeights - 1) / kTileWeights,
                        padded = row_tiles * kTileWeights;
      const std::byte* panel = words_ + row * row_bytes_;
      if (rows != padded || row_bytes_ != padded_bytes) {
        std::byte* const copy = panel_room(ctx_, columns_);
        std::memset(copy, 0, padded * padded_bytes);
        for (std::size_t r = 0; r < rows; ++r)
          std::memcpy(copy + r * padded_bytes, words_ + (row + r) * row_bytes_, row_bytes_);
        panel = copy;
      }
      output.take(row, rows, padded, [&](float* out, std::size_t out_stride) {
        block.multiply(panel, padded_bytes, row_tiles, steps, out, out_stride,
                       panel == words_ + row * row_bytes_);
      });
    }
    kernels_.end();
    return true;
  }

 private:
  const Context& ctx_;
  const TileKernels& kernels_;
  const std::byte* const words_;
  const std::size_t columns_, row_bytes_;
};

// One range of the rows of packed weights, for one block of tokens.
class PackedRows {
 public:
  PackedRows(const Context& ctx, const codec::MatrixRef& w)
      : ctx_(ctx),
        kernels_(tile_kernels(ctx)),
        native_(codec::native_kernels(ctx.isa)),
        w_(w),
        shape_(tiles_of(w)) {}

  // The grain for dividing the rows between threads.
  std::size_t grain(const Block& block) const {
    return few(block) ? kernels_.groups * kTileRows : kPanelRows;
  }

  // False if a chunk is damaged.
  bool multiply(const Block& block, const Output& output, std::size_t begin, std::size_t end) const {
    kernels_.begin(block.tile_tokens());
    const bool sound =
        few(block) ? pairs_of_groups(block, output, begin, end) : panels(block, output, begin, end);
    kernels_.end();
    return sound;
  }

 private:
  // Few tokens: two groups at a time. More tokens: panels of words.
  bool few(const Block& block) const { return block.tokens() <= kernels_.group_tokens; }

  bool pairs_of_groups(const Block& block, const Output& output, std::size_t begin, std::size_t end) const {
    PackedGroups groups(w_);
    TileGroupArgs args{};
    alignas(64) float sums[kMostTileTokens * kTileWeights];
    args.activations = block.first();
    args.words = panel_room(ctx_, shape_.columns);
    args.out = sums;
    std::byte* const scratch[] = {packed_scratch(ctx_, shape_),
                                  packed_scratch(ctx_, shape_, Room::kOtherGroup)};
    bool sound = true;
    for (std::size_t row = begin; row < end; row += kernels_.groups * kTileRows) {
      const std::size_t n = std::min(kernels_.groups * kTileRows, end - row);
      args.count = n > kTileRows ? 2 : 1;
      for (std::size_t g = 0; g < args.count; ++g)
        args.groups[g] = groups.at(row / kTileRows + g, scratch[g], args.count);
      sound = kernels_.multiply_groups(args) && sound;
      output.take(row, n, n, [&](float* out, std::size_t out_stride) {
        for (std::size_t t = 0; t < block.tokens(); ++t)
          std::copy_n(sums + t * kTileWeights, n, out + t * out_stride);
      });
    }
    return sound;
  }

  bool panels(const Block& block, const Output& output, std::size_t begin, std::size_t end) const {
    const std::size_t cols = shape_.columns, padded_cols = row_bytes_of(cols) / 2;
    PackedGroups groups(w_);
    std::byte* const scratch = packed_scratch(ctx_, shape_);
    std::byte* const words = panel_room(ctx_, cols);
    bool sound = true;
    for (std::size_t row = begin; row < end; row += kPanelRows) {
      const std::size_t n = std::min(kPanelRows, end - row);
      const std::size_t row_tiles = (n + kTileWeights - 1) / kTileWeights, padded = row_tiles * kTileWeights;
      for (std::size_t r = 0; r < padded; r += kTileRows) {
        std::byte* const to = words + r * 2 * padded_cols;
        if (r >= n) {
          std::memset(to, 0, kTileRows * 2 * padded_cols);
          continue;
        }
        const PackedGroup group = groups.at((row + r) / kTileRows, scratch);
        sound = (kernels_.words != nullptr ? kernels_.words(group, to)
                                           : merge_group(native_, group, kTileRows, padded_cols, to)) &&
                sound;
      }
      output.take(row, n, padded, [&](float* out, std::size_t out_stride) {
        block.multiply(words, 2 * padded_cols, row_tiles, steps_of(cols), out, out_stride, false);
      });
    }
    return sound;
  }

  const Context& ctx_;
  const TileKernels& kernels_;
  const codec::NativeKernels& native_;
  const codec::MatrixRef& w_;
  const codec::TileShape shape_;
};

}  // namespace

TileScratch tile_scratch(const Context& ctx, std::size_t tokens, std::size_t columns) {
  const TileKernels& kernels = tile_kernels(ctx);
  const std::size_t tile = kernels.tile_tokens, row = row_bytes_of(columns);
  // Narrower matrices take more tokens at a time, and no more bytes than a block has.
  const Bytes block = std::max(kernels.block_bytes, 2 * tile * row);
  TileScratch scratch;
  scratch.tiles = tokens > 1 ? std::min(block, round_up(tokens, tile) * row) : 0;
  scratch.panel = kPanelRows * row;
  scratch.sums = std::min(tokens, Block::most_tokens(kernels, 1)) * kPanelRows * sizeof(float);
  return scratch;
}

namespace {

template <class Rows>
void multiply(const Context& ctx, const Product& product) {
  const Rows rows(ctx, product.w);
  const codec::MatrixShape shape = product.w.shape;
  std::atomic<bool> damaged = false;
  blocks_of_tokens(ctx, product, [&](const Block& block, const Output& output) {
    split(ctx, shape.rows, rows.grain(block), product.tokens * shape.elements(),
          [&](std::size_t begin, std::size_t end) {
            if (!rows.multiply(block, output, begin, end)) damaged = true;
          });
  });
  if (damaged) throw_damaged();
}

template <class Rows>
bool multiply_rows(const Context& ctx, const Product& product, std::size_t begin, std::size_t end) {
  const Block block(ctx, product.x, 1, product.w.shape.columns);
  const Output output(ctx, product.bias, 1, product.y, product.w.shape.rows);
  return Rows(ctx, product.w).multiply(block, output, begin, end);
}

}  // namespace

constinit const TileDriver kWordTiles = {multiply<WordRows>, multiply_rows<WordRows>};
constinit const TileDriver kPackedTiles = {multiply<PackedRows>, multiply_rows<PackedRows>};

}  // namespace sluice::kernels
