// The codes of family `sliced` as stored (docs/store-format.md, section 4.2), over the Vec and the
// CodeLine of an instruction set: the common first step of all products with them. Besides the Vec, a
// code_line_ISA-inl.h offers CodeLine (a line of codes: 16 lanes of 32 bits) with load_line store_line
// widen_bytes keep_bits either differ differ_bits shift_right shift_left in_registers to_floats, and
// kSlicedVecs, the number of accumulator Vecs that fit in registers.
#pragma once

#include "kernels/lanes/vec-inl.h"
#include "kernels/products/codes/sliced_matmul_impl.h"

namespace sluice::kernels {
namespace {

using codec::kCellColumns;
using codec::kLineBytes;
using codec::kStripRows;
using codec::SliceView;

// Pairs of quads of a cell: columns 4p … 4p+3, which are bytes 0 … 3 of a lane, and the four columns 16
// further on.
inline constexpr unsigned kPairs = 4;
inline constexpr std::size_t kCellBytes = 2 * kPairs * kLineBytes;  // unpacked: a byte a code

// Codes in bytes; bits outside the view's codes may be set.
struct QuadPair {
  CodeLine quads[2];
};

constexpr unsigned in_all_bytes(unsigned bits) { return bits * 0x01010101u; }

// Pairs of codes of up to 4 bits as nibbles: quad p in the lower nibbles, p + 4 in the higher
// (docs/store-format.md, section 4.2).
template <unsigned kBits>
struct Slice;
template <>
struct Slice<4> {
  [[gnu::always_inline]] static CodeLine nibbles(const std::byte* cell, unsigned p) {
    return load_line(cell + kLineBytes * p);
  }
};
template <>
struct Slice<3> {
  [[gnu::always_inline]] static CodeLine nibbles(const std::byte* cell, unsigned p) {
    CodeLine low = load_line(cell + kLineBytes * (p % 2)), top = load_line(cell + kLineBytes * 2);
    if (p >= 2) low = shift_right(low, 2);
    if (p < 2) top = shift_left(top, 2 - p);
    if (p > 2) top = shift_right(top, p - 2);
    return either(keep_bits(low, in_all_bytes(0x33)), keep_bits(top, in_all_bytes(0x44)));
  }
};
template <>
struct Slice<2> {
  // The two bits above a code belong to other codes.
  [[gnu::always_inline]] static CodeLine nibbles(const std::byte* cell, unsigned p) {
    const CodeLine line = load_line(cell + kLineBytes * (p % 2));
    return p < 2 ? line : shift_right(line, 2);
  }
};

[[gnu::always_inline]] inline QuadPair pair_of(CodeLine nibbles) {
  return {{nibbles, shift_right(nibbles, 4)}};
}

// Pair p of both slices.
template <unsigned kBits>
[[gnu::always_inline]] inline QuadPair pair_of_both(const std::byte* msb, const std::byte* lsb, unsigned p) {
  if constexpr (kBits == 2) {
    const CodeLine high = load_line(msb + kLineBytes * (p % 2)), low = load_line(lsb + kLineBytes * (p % 2));
    // Fields 1 and 3 of `low` change places with fields 0 and 2 of `high`.
    const CodeLine moved = keep_bits(differ(shift_left(high, 2), low), in_all_bytes(0xcc));
    return pair_of(p < 2 ? differ(low, moved) : differ(high, shift_right(moved, 2)));
  } else {
    const CodeLine high = Slice<kBits>::nibbles(msb, p), low = Slice<kBits>::nibbles(lsb, p);
    if constexpr (kBits == 4) {  // the higher nibbles of `low` change places with the lower ones of `high`
      const CodeLine moved = keep_bits(differ(shift_left(high, 4), low), in_all_bytes(0xf0));
      return {{differ(low, moved), differ(high, shift_right(moved, 4))}};
    } else {
      return {{either(keep_bits(shift_left(high, 3), in_all_bytes(0x38)), keep_bits(low, in_all_bytes(0x07))),
               either(keep_bits(shift_right(high, 1), in_all_bytes(0x38)),
                      keep_bits(shift_right(low, 4), in_all_bytes(0x07)))}};
    }
  }
}

// Groups of columns, and cells of the whole matrix.
inline std::size_t groups_of(const ProductArgs& a) { return (a.columns + kCellColumns - 1) / kCellColumns; }
inline std::size_t cells_of(const ProductArgs& a) {
  return (a.rows + kStripRows - 1) / kStripRows * groups_of(a);
}

// The stored codes of a view, starting at a cell.
template <unsigned kMsb, unsigned kLsb, SliceView kView>
struct Stored {
  static constexpr bool kBoth = kView == SliceView::kHigh;
  static constexpr bool kWide = kBoth && kMsb + kLsb == kWideBits;
  static constexpr unsigned kMask = (1u << (kBoth ? kMsb + kLsb : kMsb)) - 1;
  // The codes count in steps of the view.
  static constexpr float kFactor = kBoth ? 1.0f : static_cast<float>(1u << kLsb);
  const std::byte *msb, *lsb, *scales, *zeros;

  // Scales, then zero points, lie behind the codes of all cells in the plane `msb`.
  Stored(const ProductArgs& a, std::size_t cell)
      : msb(a.planes[0] + cell * kLineBytes * kMsb),
        lsb(kBoth ? a.planes[1] + cell * kLineBytes * kLsb : nullptr),
        scales(a.planes[0] + cells_of(a) * kLineBytes * kMsb + cell * kStripRows * 2),
        zeros(a.planes[0] + cells_of(a) * (kLineBytes * kMsb + kStripRows * 2) + cell * kStripRows) {}
  [[gnu::always_inline]] void next() {
    msb += kLineBytes * kMsb;
    if constexpr (kBoth) lsb += kLineBytes * kLsb;
    scales += kStripRows * 2;
    zeros += kStripRows;
  }
  // Prefetches the cell this many after this one. (2 KiB of 8/4: 6 % faster on Zen 3 than without; twice as
  // far is the same.)
  [[gnu::always_inline]] void ask_ahead() const {
    constexpr std::size_t kCells = 8;
#pragma GCC unroll 4
    for (unsigned i = 0; i < kMsb; ++i) __builtin_prefetch(msb + kLineBytes * (kCells * kMsb + i), 0, 3);
    if constexpr (kBoth) {
#pragma GCC unroll 4
      for (unsigned i = 0; i < kLsb; ++i) __builtin_prefetch(lsb + kLineBytes * (kCells * kLsb + i), 0, 3);
    }
    __builtin_prefetch(scales + kCells * kStripRows * 2, 0, 3);
    __builtin_prefetch(zeros + kCells * kStripRows, 0, 3);
  }
  // Codes are under kMask.
  [[gnu::always_inline]] QuadPair pair(unsigned p) const {
    if constexpr (kBoth)
      return pair_of_both<kMsb>(msb, lsb, p);
    else
      return pair_of(Slice<kMsb>::nibbles(msb, p));
  }
  [[gnu::always_inline]] Vec scale() const { return F16::in_order(scales); }
  [[gnu::always_inline]] Vec zero_points() const {
    const CodeLine bytes = widen_bytes(zeros);
    if constexpr (kView == SliceView::kLow) return to_floats(shift_right(bytes, kLsb));
    constexpr float kStep = 1u << kLsb;
    if constexpr (kView == SliceView::kCenter)
      return fma(to_floats(bytes), set1(1 / kStep), set1((1 - kStep) / 2 / kStep));
    return to_floats(bytes);
  }
};

// Writes y of one strip and token.
template <class Codes>
inline void finish(const ProductArgs& a, std::size_t strip, std::size_t token, Vec total) {
  const std::size_t row = strip * kStripRows;
  const std::size_t n = a.rows - row < kStripRows ? a.rows - row : kStripRows;
  total = mul(total, set1(Codes::kFactor));
  if (a.bias != nullptr) total = add(total, load_first(a.bias + row, n, 0.0f));
  store_first(a.y + token * a.y_stride + row, n, total);
}

}  // namespace
}  // namespace sluice::kernels
