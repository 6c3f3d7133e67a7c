// What each instruction set implements for matmul.h. Plain structs, for files compiled with other flags.
#pragma once

#include <cstddef>

#include "kernels/products/product_args.h"

namespace sluice::kernels {

struct TransposedArgs {
  const float* x;  // row t at x + t*x_stride
  std::size_t x_stride;
  const std::byte* weights;  // (rows, columns)
  std::size_t rows, columns;
  float* y;  // row t at y + t*y_stride; +0 before the call
  std::size_t y_stride;
};

// For words of one type.
struct WordKernels {
  RowsKernel rows;
  // col_begin is a multiple of 16.
  void (*transposed)(const TransposedArgs& args, std::size_t token_begin, std::size_t token_end,
                     std::size_t col_begin, std::size_t col_end);
};

struct MatmulKernels {
  void (*arrange)(const float* x, std::size_t columns, float* arranged);  // one token
  WordKernels bf16, f16, f32;
};

}  // namespace sluice::kernels
