// What each instruction set implements for matmul.h. Plain structs, for files compiled with other flags.
#pragma once

#include <cstddef>

#include "base/dtype.h"

namespace sluice::kernels {

struct MatmulArgs {
  const float* packed;  // (tokens, packed_stride), see matmul.h
  std::size_t packed_stride;
  std::size_t tokens;
  const std::byte* weights;  // (rows, cols)
  std::size_t row_bytes;
  DType dtype;  // BF16, F16 or F32
  std::size_t cols;
  const float* bias;  // (rows), or null
  float* y;           // row t at y + t*y_stride
  std::size_t y_stride;
  // With few tokens: how far ahead of the current line of each row to prefetch; 0: not at all.
  std::size_t ahead_bytes;
};

struct TransposedArgs {
  const float* x;  // row t at x + t*x_stride
  std::size_t x_stride;
  const std::byte* weights;  // (rows, cols)
  DType dtype;
  std::size_t rows, cols;
  float* y;  // row t at y + t*y_stride; +0 before the call
  std::size_t y_stride;
};

struct MatmulKernels {
  void (*pack)(const float* x, std::size_t cols, float* packed);  // one token
  void (*rows)(const MatmulArgs& args, std::size_t row_begin, std::size_t row_end);
  // col_begin is a multiple of 16.
  void (*transposed)(const TransposedArgs& args, std::size_t token_begin, std::size_t token_end,
                     std::size_t col_begin, std::size_t col_end);
};

}  // namespace sluice::kernels
