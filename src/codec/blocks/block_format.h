// A format that cuts rows into blocks, one after the other in one plane: made from what one block holds. The
// types of GGUF files are such. docs/formats.md; docs/adding-a-format.md.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include "base/bytes.h"
#include "base/error.h"
#include "base/float16.h"
#include "codec/matrix_format.h"
#include "device/space.h"

namespace sluice::codec::blocks {

// What a block holds, wherever it lies: nothing is aligned.
inline std::uint16_t word16(const std::byte* at) {
  std::uint16_t word;
  std::memcpy(&word, at, sizeof(word));
  return word;
}
inline std::uint32_t word32(const std::byte* at) {
  std::uint32_t word;
  std::memcpy(&word, at, sizeof(word));
  return word;
}
inline float half(const std::byte* at) { return fp16_to_float(word16(at)); }
inline unsigned byte(const std::byte* at) { return std::to_integer<unsigned>(*at); }
// Codes of 4 bits, 32 in 16 bytes: element i < 16 is the lower half of byte i, element i + 16 its upper half.
inline unsigned nibble32(const std::byte* codes, unsigned i) {
  return byte(codes + i % 16) >> (i / 16 * 4) & 15;
}

// `Block` has kElements, kBytes, and
//   static void decode(const std::byte* block, float* out)   kElements numbers: the definition
//   static bool sound(const std::byte* block)                its scales are numbers
template <class Block>
struct BlockFormat {
  static const std::byte* plane(const MatrixRef& matrix) {
    return device::host_space().pointer(matrix.planes[0]);
  }

  static void check(const MatrixRef& matrix) {
    const std::uint64_t in_row = matrix.shape.columns / Block::kElements;
    const std::byte* block = plane(matrix);
    for (std::uint64_t row = 0; row < matrix.shape.rows; ++row)
      for (std::uint64_t i = 0; i < in_row; ++i, block += Block::kBytes)
        if (!Block::sound(block))
          throw Error(ErrorKind::kCorrupt, "a matrix in the format " + std::string(matrix.format->name) +
                                               " has a scale that is no number")
              .expected("finite scales")
              .found("another one for row " + std::to_string(row) + ", columns from " +
                     std::to_string(i * Block::kElements) + " on")
              .fix("copy the file again from where it came from");
  }

  static void row(const MatrixRef& matrix, std::uint64_t row, float* out) {
    const std::uint64_t in_row = matrix.shape.columns / Block::kElements;
    const std::byte* block = plane(matrix) + row * in_row * Block::kBytes;
    for (std::uint64_t i = 0; i < in_row; ++i, block += Block::kBytes, out += Block::kElements)
      Block::decode(block, out);
  }

  static constexpr MatrixFormat named(std::string_view name) {
    MatrixFormat format;
    format.name = name;
    format.planes = {{{"blocks", bytes_in_blocks<1, Block::kElements, Block::kBytes>}}};
    format.block = {1, Block::kElements};
    format.ragged = false;
    format.input = InputForm::kBlocks;
    format.check = check;
    format.row = row;
    return format;
  }
};

}  // namespace sluice::codec::blocks
