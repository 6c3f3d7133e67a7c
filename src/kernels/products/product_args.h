// A product as the kernels of every format and instruction set take it. Plain structs, for files compiled
// with other flags.
#pragma once

#include <cstddef>

#include "codec/matrix_format.h"

namespace sluice::kernels {

struct ProductArgs {
  const float* x;  // (tokens, x_stride), in the form that the kernel reads
  std::size_t x_stride;
  std::size_t tokens;                           // at least 1
  const std::byte* planes[codec::kMostPlanes];  // in the order of the format; null: absent
  std::size_t row_bytes;                        // for a matrix of words
  std::size_t rows, columns;
  codec::SliceView view;  // for slices
  const float* bias;      // (rows), or null
  float* y;               // row t at y + t*y_stride
  std::size_t y_stride;
  // With few tokens: how far ahead of the current line of each row to prefetch; 0: not at all.
  std::size_t ahead_bytes;
};

// Computes rows [begin, end) for all tokens; `begin` is a multiple of kRowGrain, and so is `end` unless it is
// the last row's.
using RowsKernel = void (*)(const ProductArgs& args, std::size_t begin, std::size_t end);

// Whole cache lines of y, whole register tiles, whole strips of codes.
inline constexpr std::size_t kRowGrain = 16;

}  // namespace sluice::kernels
