// What each instruction set implements for int8_matmul.h. Plain structs, for files compiled with other flags.
#pragma once

#include <cstddef>

namespace sluice::kernels {

struct Int8Args {
  const float* packed;  // (tokens, packed_stride), see matmul.h
  std::size_t packed_stride;
  std::size_t tokens;
  const std::byte* codes;   // lines of cell (strip, group of 32 columns)
  const std::byte* scales;  // (strips, groups of 128 columns, 16) binary16
  std::size_t rows, columns;
  const float* bias;  // (rows), or null
  float* y;           // row t at y + t*y_stride
  std::size_t y_stride;
};

// Where packed activations have column `column` (matmul.h).
constexpr std::size_t packed_place(std::size_t column) {
  return column / 32 * 32 + column % 2 * 16 + column % 32 / 2;
}

// Strips [strip_begin, strip_end) of all tokens.
struct Int8Kernels {
  void (*strips)(const Int8Args& args, std::size_t strip_begin, std::size_t strip_end);
};

}  // namespace sluice::kernels
