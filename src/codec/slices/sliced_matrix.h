// A matrix in two slices of AMAT codes (SPEC 4.2), as family `sliced` stores experts. The layout is in
// docs/store-format.md, section 4.2; the arithmetic of a group equals affine_group.h, bit for bit.
#pragma once

#include <cstdint>
#include <span>

#include "base/dtype.h"
#include "codec/slices/slice_bits.h"
#include "codec/slices/slice_cells.h"

namespace sluice::codec {

// The bytes of one matrix in both parts of its expert.
struct SlicedShape : CellShape {
  SliceBits bits;
  constexpr Bytes scales_offset() const { return code_bytes(bits.low); }  // in `msb`
  constexpr Bytes zeros_offset() const { return scales_offset() + scale_bytes(); }
  constexpr Bytes msb_bytes() const { return zeros_offset() + zero_bytes(); }
  constexpr Bytes lsb_bytes() const { return code_bytes(bits.shift()); }
  constexpr Bytes scale_bytes() const { return cells() * 2 * kStripRows; }
  constexpr Bytes zero_bytes() const { return cells() * kStripRows; }
  bool operator==(const SlicedShape&) const = default;
};

// Where kernels find the arrays of a matrix in the parts of its expert. Owns nothing. Cell (strip, group) has
// index i = strip·groups() + group: its `msb` lines are at i·64·low, its `lsb` lines at i·64·shift (null: the
// slice is absent), its 16 scales (binary16, little-endian) and 16 zero points at i·16.
struct SlicedView {
  SlicedShape shape;
  const std::byte* msb = nullptr;
  const std::byte* scales = nullptr;  // aligned only as the part is
  const std::byte* zeros = nullptr;
  const std::byte* lsb = nullptr;
};
// REQUIRES: msb.size() == shape.msb_bytes(); lsb empty, or of shape.lsb_bytes().
SlicedView sliced_view(const SlicedShape& shape, std::span<const std::byte> msb,
                       std::span<const std::byte> lsb);

// Where coding whole strips writes: places in the four arrays. The arrays lie one after another in `msb`, and
// in `lsb`, only for a matrix that is coded as a whole.
struct SlicedPlanes {
  std::byte* msb = nullptr;     // shape.code_bytes(low)
  std::byte* scales = nullptr;  // shape.scale_bytes()
  std::byte* zeros = nullptr;   // shape.zero_bytes()
  std::byte* lsb = nullptr;     // shape.lsb_bytes()
};

// Whether weights of this type can be quantised: BF16, F16 and F32.
bool can_be_quantised(DType dtype);

// Codes whole strips (the last may be cut short): `words` is rows·columns weights of `dtype`, row-major, with
// any alignment. Writes every byte of the planes. Thread-safe. Error(kInvalid) naming row and column of a
// weight that is infinite or NaN, where `first_row` is the number of the first of these rows.
void quantise_sliced(std::span<const std::byte> words, DType dtype, const SlicedShape& shape,
                     const SlicedPlanes& planes, std::uint64_t first_row = 0);

// Which weights a coded matrix stands for.
enum class SliceView : std::uint8_t {
  kHigh,    // both slices
  kLow,     // MSB alone: zero point truncated, scale adapted
  kCenter,  // MSB alone, with the middle of the values that LSB may have (`amat_center`)
};
// Decodes row `row`: shape.columns floats, each exactly the value of section 4.2. Plain code, for tests and
// evaluation. REQUIRES: view.lsb for kHigh.
void dequantise_row(const SlicedView& view, SliceView which, std::uint64_t row, std::span<float> out);

}  // namespace sluice::codec
