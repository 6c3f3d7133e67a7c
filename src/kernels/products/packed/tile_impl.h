// Products that round activations to BF16 (Context::products): the work that matmul.h and packed_matmul.h
// hand to an instruction set.
//
// ORDERS OF SUMS. Activations are rounded to nearest, ties to even; their columns, and those of the weights,
// are padded with +0 to a multiple of 64. For one output element, columns are taken in steps of 32,
// ascending, and the bias is added last. Subnormal numbers count as zero, as inputs and as results, unless
// stated otherwise. CPUs have two ways of adding the products of a step, so there are two orders; every
// number of tokens and of threads, and both views, follow the one in use.
//
// kTiles: the 16 products of even columns are added to +0 by fused multiply-add, ascending, and so are
// those of odd columns; the sum of the two is added to the sum of the earlier steps. TDPBF16PS works this way
// (Intel SDM).
//
// kPairs: lane l of 16 adds the product of column 2l + 1 of the step, then that of column 2l, to its sum of
// the earlier steps, by fused multiply-adds. Each is rounded, and flushed to a zero of its sign if it is less
// than 2^-126 when rounded to 24 bits with unlimited exponents (x86: underflow detected after rounding). The
// lanes are then summed as the tree of matmul.h, where subnormal numbers count. VDPBF16PS on AMD Zen 5 works
// this way for every input tried. Intel's description has the same two additions in that order, but does not
// say when a sum that rounding makes 2^-126 is flushed: self_check() tests such sums, so that a CPU which
// adds otherwise does not use the instruction.
//
// The scalar path computes either order, one number after the other.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/products/packed/packed_impl.h"

namespace sluice::kernels {

inline constexpr std::size_t kTileWeights = 16;  // rows of weights in a tile
inline constexpr std::size_t kStepColumns = 32;

// All steps of a tile of tokens, as interleave() of the same TileKernels makes them.
// kTiles: in a step, 16 rows with one pair of columns, 2k and 2k + 1, for token after token. Rows are
// row_bytes apart: 64, or 4 for one token.
// kPairs: lines of 64 bytes, each the columns of a token in a step, in an order of the kernel's own.
// row_bytes is ignored. In both, one token's tile is its activations themselves.
struct Activations {
  const std::byte* tiles;
  std::size_t row_bytes;
  std::size_t tokens;  // 1 to TileKernels::tile_tokens
};

// 16 or 32 rows of words times up to 2 tiles of tokens.
struct TileArgs {
  const std::byte* rows;
  std::size_t row_bytes;
  std::size_t row_tiles;  // 1 or 2
  std::size_t steps;      // 64 bytes of each row in a step
  Activations activations[2];
  std::size_t token_tiles;  // 1 or 2
  float* out;  // token t, row r at out + t·out_stride + r; the second tile's tokens follow the first's
  std::size_t out_stride;
  // Rows to prefetch meanwhile, row_bytes apart: 64 bytes of each in a step.
  const std::byte* ahead;
  std::size_t ahead_rows;
};

// One or two groups of a packed matrix times a tile of tokens.
struct TileGroupArgs {
  PackedGroup groups[2];
  std::size_t count;  // 1 or 2
  Activations activations;
  std::byte* words;  // room for 16 rows of words, on a cache line
  float* out;        // (tokens, 16)
};

struct TileKernels {
  std::size_t tile_tokens;  // the most tokens of a tile
  // multiply_groups() takes at most this many tokens (at most tile_tokens); with more, words are made first.
  std::size_t group_tokens;
  std::size_t groups;  // that multiply_groups() takes at once: 1 or 2
  // With at least this many tokens, rows are prefetched while the rows before them are multiplied.
  std::size_t ahead_tokens;
  std::size_t ahead_rows;   // this many at once, or a multiple
  std::size_t block_bytes;  // bytes of tiles that stay in a cache while all weights pass by
  // Rounds one token to BF16, padded.
  void (*round)(const float* x, std::size_t cols, std::byte* row);
  // Turns rows of rounded activations, row_bytes apart, of the tokens of a tile into `steps` steps of at most
  // 64·tile_tokens bytes. kTiles: 64 bytes per row; absent tokens are 0.
  void (*interleave)(const std::byte* rows, std::size_t row_bytes, std::size_t tokens, std::size_t steps,
                     std::byte* tiles);
  // A thread that multiplies first prepares its unit for this many tokens in a tile, and finally releases it.
  // Fewer than tile_tokens only if there is one tile.
  void (*begin)(std::size_t tokens);
  void (*end)();
  void (*multiply)(const TileArgs& args);
  // False if a group is damaged.
  bool (*multiply_groups)(const TileGroupArgs& args);
  // Decodes the words of a group: 8 rows of 128·blocks bytes, on a cache line. False if the group is damaged.
  // Null: use the codecs' own.
  bool (*words)(const PackedGroup& group, std::byte* words);
};

}  // namespace sluice::kernels
