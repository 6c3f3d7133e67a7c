// Products by matrix units (Context::tiles): what matmul.h and packed_matmul.h hand to an instruction set.
//
// ORDER OF SUMS. Activations are rounded to BF16 (to nearest, ties to even); their columns, and those of the
// weights, are padded with +0 to a multiple of 64. For one output element, columns are taken in steps of 32.
// In a step, the 16 products of even columns are added by fused multiply-add, ascending, to +0, those of odd
// columns likewise; the sum of the two is added to what the steps before gave; the bias is added last.
// Subnormal numbers count as zero, as inputs and as results. That is what TDPBF16PS does (Intel SDM); the
// scalar path does the same, one number after the other. Every number of tokens and of threads, and both
// views, follow it.
//
// A unit multiplies tiles: A, 16 rows of 64 bytes (32 weights of each row, as they lie in memory), by B, 16
// rows of one pair of columns of up to 16 tokens, giving 16 x 16 sums.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/packed_impl.h"

namespace sluice::kernels {

inline constexpr std::size_t kTileTokens = 16;
inline constexpr std::size_t kTileWeights = 16;  // rows of weights
inline constexpr std::size_t kStepColumns = 32;
inline constexpr std::size_t kTileBytes = 16 * 64;  // of an A or B tile

// B tiles of all steps of up to 16 tokens. Row k of a tile has the pair of columns 2k and 2k + 1 of token
// after token. Rows are row_bytes apart: 64, or 4 for one token, whose tiles are then its activations
// themselves.
struct Activations {
  const std::byte* tiles;
  std::size_t row_bytes;
  std::size_t tokens;  // 1 to 16
};

// 16 or 32 rows of words times up to 2 tiles of tokens.
struct TileArgs {
  const std::byte* rows;
  std::size_t row_bytes;
  std::size_t row_tiles;  // 1 or 2
  std::size_t steps;      // 64 bytes of each row in a step
  Activations activations[2];
  std::size_t token_tiles;  // 1 or 2; if 2, the first is full
  float* out;               // token t, row r at out + t·out_stride + r
  std::size_t out_stride;
  // Rows that are asked for meanwhile, row_bytes apart: 64 bytes of each in a step.
  const std::byte* ahead;
  std::size_t ahead_rows;
};

// Two groups, or one, of a packed matrix times up to 16 tokens.
struct TileGroupArgs {
  PackedGroup groups[2];
  std::size_t count;  // 1 or 2
  Activations activations;
  std::byte* words;  // room for 16 rows of words, on a cache line
  float* out;        // (tokens, 16)
};

struct TileKernels {
  // One token: BF16, padded.
  void (*round)(const float* x, std::size_t cols, std::byte* row);
  // Rows of rounded activations, row_bytes apart, of 1 to 16 tokens, to B tiles, 64 bytes a row; tokens that
  // are not there are 0.
  void (*interleave)(const std::byte* rows, std::size_t row_bytes, std::size_t tokens, std::size_t steps,
                     std::byte* tiles);
  // A thread that multiplies prepares its unit for so many tokens in a tile, and leaves it. Fewer than 16
  // only if there is one tile.
  void (*begin)(std::size_t tokens);
  void (*end)();
  void (*multiply)(const TileArgs& args);
  // False if a group is damaged.
  bool (*multiply_groups)(const TileGroupArgs& args);
};

}  // namespace sluice::kernels
