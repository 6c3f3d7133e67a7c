// Rows of words as kernels of products read them. A row has
//
//   kHalves                 halves of 32 columns that are read at a time, a unit
//   kWords                  32-bit words of memory that a lane keeps for each lane of the sum in a unit
//   Raw, load(warp, unit)   what a lane reads of a unit
//   Cursor, cursor(warp), advance(warp, cursor, units), load(warp, cursor, unit)
//                           the same from a unit on that moves; for products of many tokens
//   numbers(warp, raw, h, even, odd)          columns 32h + 2l and 32h + 2l + 1 of the unit, for its lanes l
//   last_numbers(warp, half, even, odd)       the same of a half that is cut short, or beyond all columns;
//                                             what is not there is 0
//
// for one of the 16/L lanes of a warp that have a sum (sums-inl.h); `thread` is which of them.
#pragma once

#include <type_traits>

#include "kernels/gpu/products/product_items.h"

namespace sluice::kernels::gpu {

// Columns are a multiple of 8; everything is aligned to 16 bytes.
template <DType kType, class Warp, int L>
class WordRow {
 public:
  using Float = typename Warp::Float;
  using Word = typename Warp::Word;
  static constexpr std::uint32_t kBytes = kType == DType::kF32 ? 4 : 2;
  static constexpr int kHalves = 1, kWords = kBytes / 2;
  using Raw = typename Warp::template Words<L * kWords>;
  using Cursor = typename Warp::Place;

  // Row `first` + `on` of the side.
  SLUICE_GPU WordRow(const Warp&, const ProductItem& item, const ProductSide& side, std::uint64_t first,
                     Word on, Word thread)
      : base_(side.planes[0] + first * item.columns * kBytes),
        at_(on * Word(item.columns * kBytes) + thread * Word(2 * L * kBytes)),
        column_(thread * Word(2 * L)),
        columns_(item.columns) {}

  SLUICE_GPU Raw load(const Warp& warp, std::uint32_t unit) const {
    return warp.template load_words<L * kWords>(base_ + std::size_t{unit} * 32 * kBytes, at_);
  }
  SLUICE_GPU Cursor cursor(const Warp& warp) const { return warp.place(base_, at_); }
  static SLUICE_GPU void advance(const Warp& warp, Cursor& cursor, std::uint32_t units) {
    warp.advance(cursor, units * 32 * kBytes);
  }
  static SLUICE_GPU Raw load(const Warp& warp, const Cursor& cursor, int unit) {
    return warp.template load_words<L * kWords>(cursor, unit * 32 * static_cast<int>(kBytes));
  }
  SLUICE_GPU void numbers(const Warp& warp, const Raw& raw, int, Float (&even)[L], Float (&odd)[L]) const {
    SLUICE_GPU_UNROLL
    for (int i = 0; i < L; ++i) {
      if constexpr (kType == DType::kF32) {
        even[i] = warp.number(raw.of[2 * i]);
        odd[i] = warp.number(raw.of[2 * i + 1]);
      } else if constexpr (kType == DType::kBF16) {
        even[i] = warp.number(raw.of[i] << Word(16));
        odd[i] = warp.number(raw.of[i] & Word(0xffff0000u));
      } else {
        even[i] = warp.from_f16(raw.of[i] & Word(0xffffu));
        odd[i] = warp.from_f16(raw.of[i] >> Word(16));
      }
    }
  }
  SLUICE_GPU void last_numbers(const Warp& warp, std::uint32_t half, Float (&even)[L],
                               Float (&odd)[L]) const {
    const auto there = Word(32 * half) + column_ < Word(columns_);
    numbers(warp,
            warp.template load_words_if<L * kWords>(there, base_ + std::size_t{half} * 32 * kBytes, at_), 0,
            even, odd);
  }

 private:
  const std::byte* base_;
  Word at_, column_;
  std::uint32_t columns_;
};

// Words of any type, any number of columns, anywhere: byte after byte.
template <class Warp, int L>
class AnyWordRow {
 public:
  static_assert(L == 1);
  using Float = typename Warp::Float;
  using Word = typename Warp::Word;
  static constexpr int kHalves = 0, kWords = 2;  // no half is read but as the last one
  using Raw = typename Warp::template Words<2>;

  SLUICE_GPU AnyWordRow(const Warp&, const ProductItem& item, const ProductSide& side, std::uint64_t first,
                        Word on, Word thread)
      : type_(item.type),
        bytes_(item.type == DType::kF32 ? 4 : 2),
        columns_(item.columns),
        base_(side.planes[0] + first * item.columns * bytes_),
        row_(on * Word(item.columns * bytes_)),
        column_(thread * Word(2)) {}

  SLUICE_GPU void last_numbers(const Warp& warp, std::uint32_t half, Float (&even)[L],
                               Float (&odd)[L]) const {
    even[0] = element(warp, Word(32 * half) + column_);
    odd[0] = element(warp, Word(32 * half + 1) + column_);
  }

 private:
  SLUICE_GPU Float element(const Warp& warp, Word column) const {
    const auto there = column < Word(columns_);
    const Word at = row_ + column * Word(bytes_);
    const auto byte = [&](std::uint32_t i) { return warp.load_byte_if(there, base_, at + Word(i), Word(0)); };
    const Word low = byte(0) | byte(1) << Word(8);
    if (type_ == DType::kBF16) return warp.number(low << Word(16));
    if (type_ == DType::kF16) return warp.from_f16(low);
    return warp.number(low | byte(2) << Word(16) | byte(3) << Word(24));
  }

  DType type_;
  std::uint32_t bytes_, columns_;
  const std::byte* base_;
  Word row_, column_;
};

// Formats of ProductKernel. kWide: many rows fit the registers of a
// warp, as a unit of a row is small; kLarge: few do.
template <DType kType>
struct WordFormat {
  static constexpr bool kWide = true, kLarge = false;
  template <class Warp, int L>
  using Row = WordRow<kType, Warp, L>;
};
struct AnyWordFormat {
  static constexpr bool kWide = false, kLarge = false;
  template <class Warp, int L>
  using Row = AnyWordRow<Warp, L>;
};

}  // namespace sluice::kernels::gpu
