// What each instruction set implements for sliced_matmul.h. Plain structs, for files compiled with other
// flags.
#pragma once

#include <cstddef>

#include "codec/slices/sliced_matrix.h"

namespace sluice::kernels {

struct SlicedArgs {
  const float* packed;  // (tokens, packed_stride), see sliced_matmul.h
  std::size_t packed_stride;
  std::size_t tokens;  // at least 1
  codec::SliceView which;
  codec::SliceBits bits;       // one of kStoredSliceBits
  const std::byte *msb, *lsb;  // lines of cell (strip, group) at (strip·groups + group)·64·bits; lsb in kHigh
  const std::byte* scales;     // (cells, 16) binary16
  const std::byte* zeros;      // (cells, 16) bytes
  float factor;                // f of sliced_matmul.h
  std::size_t rows, groups;
  const float* bias;  // (rows), or null
  float* y;           // row t at y + t*y_stride
  std::size_t y_stride;
};

// Scales of x for column c of a group: 2^-(bits that the code is shifted in its word). The kernels' masks are
// at these bits.
inline constexpr float kSlicedFactors[4] = {0x1p0f, 0x1p-8f, 0x1p-16f, 0x1p-24f};
inline constexpr float kSlicedLeast = 0x1p-100f;  // smaller activations count as 0
// With codes of 8 bits, the code of column 3 mod 4 would cover the sign of its word: it is shifted down
// instead, and its chain is 2^-24 times as large.
inline constexpr unsigned kWideBits = 8;
inline constexpr float kWideFactor = 0x1p24f;

// Strips [strip_begin, strip_end) of all tokens.
struct SlicedKernels {
  void (*strips)(const SlicedArgs& args, std::size_t strip_begin, std::size_t strip_end);
};

}  // namespace sluice::kernels
