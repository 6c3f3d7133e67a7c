// A matrix of signed 8-bit codes with one scale for 128 columns of a row (SPEC 4.1: weights other than routed
// experts), as pack with Setting::kDense int8 stores it. The layout is in docs/store-format.md, section 4.3.
#pragma once

#include <cstdint>
#include <span>

#include "base/dtype.h"
#include "codec/slices/slice_cells.h"

namespace sluice::codec {

inline constexpr std::size_t kInt8GroupColumns = 128;

struct Int8Shape : CellShape {
  constexpr std::uint64_t scale_groups() const {
    return (columns + kInt8GroupColumns - 1) / kInt8GroupColumns;
  }
  constexpr Bytes scales_offset() const { return code_bytes(8); }
  constexpr Bytes scale_bytes() const { return strips() * scale_groups() * 2 * kStripRows; }
  constexpr Bytes bytes() const { return scales_offset() + scale_bytes(); }
  bool operator==(const Int8Shape&) const = default;
};

// Codes whole strips, like quantise_sliced(). `codes`: shape.code_bytes(8); `scales`: shape.scale_bytes().
void quantise_int8(std::span<const std::byte> words, DType dtype, const Int8Shape& shape, std::byte* codes,
                   std::byte* scales, std::uint64_t first_row = 0);

// Decodes row `row` of a stored matrix: shape.columns floats, each exactly scale · code. Plain code, for
// single rows.
void dequantise_int8_row(std::span<const std::byte> matrix, const Int8Shape& shape, std::uint64_t row,
                         std::span<float> out);

}  // namespace sluice::codec
