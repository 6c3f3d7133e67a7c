// Rows of blocks of codes (docs/formats.md) as kernels of products read them (word_rows-inl.h): the numbers
// that codec/blocks defines, rounded as there. Products of a block's scale, a code of a scale and a code
// are exact, so a difference of two of them is one fused multiply-add.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/gpu/products/product_items.h"

namespace sluice::kernels::gpu {

// Reads bytes that lie at a multiple of kAlignment, as words.
template <class Warp, int kAlignment>
class BlockBytes {
 public:
  using Word = typename Warp::Word;

  static SLUICE_GPU Word half(const Warp& warp, const std::byte* p, Word at) {
    if constexpr (kAlignment >= 2)
      return warp.load_half(p, at);
    else
      return warp.load_byte(p, at) | warp.load_byte(p + 1, at) << Word(8);
  }
  // kBytes of them; the rest of the last word is 0.
  template <int kBytes>
  static SLUICE_GPU typename Warp::template Words<(kBytes + 3) / 4> words(const Warp& warp,
                                                                          const std::byte* p, Word at) {
    constexpr int kCount = (kBytes + 3) / 4;
    if constexpr (kBytes % 4 == 0 && kAlignment >= (kBytes < 16 ? kBytes : 16)) {
      return warp.template load_words<kCount>(p, at);
    } else {
      typename Warp::template Words<kCount> words;
      SLUICE_GPU_UNROLL
      for (int i = 0; i < kCount; ++i) {
        words.of[i] = Word(0);
        SLUICE_GPU_UNROLL
        for (int b = 4 * i; b < kBytes && b < 4 * i + 4; b += kBytes % 2 == 0 ? 2 : 1)
          words.of[i] = words.of[i] | (kBytes % 2 == 0 ? half(warp, p + b, at) : warp.load_byte(p + b, at))
                                          << Word(8 * (b % 4));
      }
      return words;
    }
  }
};

// A whole number below 2^22, less `less`.
template <class Warp>
SLUICE_GPU typename Warp::Float whole_number(const Warp& warp, typename Warp::Word number, float less = 0) {
  using Float = typename Warp::Float;
  return warp.number(number | typename Warp::Word(0x4b000000u)) - Float(8388608.0f + less);
}

// What the rows below have in common. `Own` is one of them; its blocks have kColumns, kBytes, and
// kOtherBytes of the second plane.
template <class Warp, int L, std::uint32_t kColumns, std::uint32_t kBytes, std::uint32_t kOtherBytes = 0>
class BlockRow {
 public:
  using Float = typename Warp::Float;
  using Word = typename Warp::Word;
  static constexpr int kHalves = kColumns / 32;

  SLUICE_GPU void last_numbers(const Warp&, std::uint32_t, Float (&even)[L], Float (&odd)[L]) const {
    SLUICE_GPU_UNROLL
    for (int i = 0; i < L; ++i) even[i] = odd[i] = Float(0.0f);
  }

 protected:
  SLUICE_GPU BlockRow(const ProductItem& item, const ProductSide& side, std::uint64_t first, Word on,
                      Word thread)
      : thread_(thread) {
    const std::uint32_t blocks = item.columns / kColumns;
    base_ = side.planes[0] + first * blocks * kBytes;
    row_ = on * Word(blocks * kBytes);
    if constexpr (kOtherBytes != 0) {
      other_base_ = side.planes[1] + first * blocks * kOtherBytes;
      other_row_ = on * Word(blocks * kOtherBytes);
    }
  }
  SLUICE_GPU const std::byte* block(std::uint32_t unit) const { return base_ + std::size_t{unit} * kBytes; }
  SLUICE_GPU const std::byte* other(std::uint32_t unit) const {
    return other_base_ + std::size_t{unit} * kOtherBytes;
  }

  const std::byte *base_ = nullptr, *other_base_ = nullptr;
  Word row_{0}, other_row_{0}, thread_;
};

// Byte b of words, shifted down by `bits`, and only `mask` of it.
template <class Warp, int kCount>
SLUICE_GPU typename Warp::Word byte_of(const typename Warp::template Words<kCount>& words, int b, int bits,
                                       std::uint32_t mask) {
  using Word = typename Warp::Word;
  return words.of[b / 4] >> Word(static_cast<std::uint32_t>(8 * (b % 4) + bits)) & Word(mask);
}

template <class Warp, int L, bool kAligned>
class Q80Row : public BlockRow<Warp, L, 32, 34> {
 public:
  using Base = BlockRow<Warp, L, 32, 34>;
  using Float = typename Warp::Float;
  using Word = typename Warp::Word;
  using Bytes = BlockBytes<Warp, kAligned ? 2 : 1>;
  static constexpr int kWords = L == 1 ? 2 : 1;
  struct Raw {
    Word scale;
    typename Warp::template Words<(2 * L + 3) / 4> codes;
  };

  SLUICE_GPU Q80Row(const Warp&, const ProductItem& item, const ProductSide& side, std::uint64_t first,
                    Word on, Word thread)
      : Base(item, side, first, on, thread) {}
  SLUICE_GPU Raw load(const Warp& warp, std::uint32_t unit) const {
    const std::byte* const p = this->block(unit);
    return {Bytes::half(warp, p, this->row_),
            Bytes::template words<2 * L>(warp, p + 2, this->row_ + this->thread_ * Word(2 * L))};
  }
  SLUICE_GPU void numbers(const Warp& warp, const Raw& raw, int, Float (&even)[L], Float (&odd)[L]) const {
    const Float scale = warp.from_f16(raw.scale);
    const auto number = [&](int b) {
      return scale * whole_number(warp, byte_of<Warp>(raw.codes, b, 0, 255) ^ Word(128), 128);
    };
    SLUICE_GPU_UNROLL
    for (int i = 0; i < L; ++i) even[i] = number(2 * i), odd[i] = number(2 * i + 1);
  }
};

template <class Warp, int L, bool kAligned>
class Q4KRow : public BlockRow<Warp, L, 256, 144> {
 public:
  using Base = BlockRow<Warp, L, 256, 144>;
  using Float = typename Warp::Float;
  using Word = typename Warp::Word;
  using Bytes = BlockBytes<Warp, kAligned ? 16 : 1>;
  static constexpr int kWords = L == 1 ? 8 : 3;
  struct Raw {
    typename Warp::template Words<4> head;
    typename Warp::template Words<(2 * L + 3) / 4> codes[4];  // for two halves each
  };

  SLUICE_GPU Q4KRow(const Warp&, const ProductItem& item, const ProductSide& side, std::uint64_t first,
                    Word on, Word thread)
      : Base(item, side, first, on, thread) {}
  SLUICE_GPU Raw load(const Warp& warp, std::uint32_t unit) const {
    const std::byte* const p = this->block(unit);
    Raw raw;
    raw.head = Bytes::template words<16>(warp, p, this->row_);
    SLUICE_GPU_UNROLL
    for (int i = 0; i < 4; ++i)
      raw.codes[i] =
          Bytes::template words<2 * L>(warp, p + 16 + 32 * i, this->row_ + this->thread_ * Word(2 * L));
    return raw;
  }
  SLUICE_GPU void numbers(const Warp& warp, const Raw& raw, int h, Float (&even)[L], Float (&odd)[L]) const {
    const auto code = [&](int k, int bits, std::uint32_t mask) {
      return byte_of<Warp>(raw.head, 4 + k, bits, mask);
    };
    const Word scale = h < 4 ? code(h, 0, 63) : code(h + 4, 0, 15) | code(h - 4, 6, 3) << Word(4),
               minimum = h < 4 ? code(h + 4, 0, 63) : code(h + 4, 4, 15) | code(h, 6, 3) << Word(4);
    const Float of_scale = warp.from_f16(raw.head.of[0] & Word(0xffffu)) * whole_number(warp, scale),
                of_minimum = warp.from_f16(raw.head.of[0] >> Word(16)) * whole_number(warp, minimum);
    const Float less = warp.number(warp.bits(of_minimum) ^ Word(0x80000000u));
    const auto number = [&](int b) {
      return warp.fma(whole_number(warp, byte_of<Warp>(raw.codes[h / 2], b, h % 2 * 4, 15)), of_scale, less);
    };
    SLUICE_GPU_UNROLL
    for (int i = 0; i < L; ++i) even[i] = number(2 * i), odd[i] = number(2 * i + 1);
  }
};

template <class Warp, int L, bool kAligned>
class Q6KRow : public BlockRow<Warp, L, 256, 210> {
 public:
  using Base = BlockRow<Warp, L, 256, 210>;
  using Float = typename Warp::Float;
  using Word = typename Warp::Word;
  using Bytes = BlockBytes<Warp, kAligned ? 2 : 1>;
  using Codes = typename Warp::template Words<(2 * L + 3) / 4>;
  static constexpr int kWords = L == 1 ? 16 : 8;
  struct Raw {
    Word scale, scales[8];  // scales: of each half, those of this thread's columns
    Codes low[4], high[2];
  };

  SLUICE_GPU Q6KRow(const Warp&, const ProductItem& item, const ProductSide& side, std::uint64_t first,
                    Word on, Word thread)
      : Base(item, side, first, on, thread) {}
  SLUICE_GPU Raw load(const Warp& warp, std::uint32_t unit) const {
    const std::byte* const p = this->block(unit);
    const Word at = this->row_ + this->thread_ * Word(2 * L);
    Raw raw;
    SLUICE_GPU_UNROLL
    for (int i = 0; i < 4; ++i) raw.low[i] = Bytes::template words<2 * L>(warp, p + 32 * i, at);
    SLUICE_GPU_UNROLL
    for (int i = 0; i < 2; ++i) raw.high[i] = Bytes::template words<2 * L>(warp, p + 128 + 32 * i, at);
    raw.scale = Bytes::half(warp, p + 208, this->row_);
    const Word of_thread = this->row_ + this->thread_ / Word(8 / L);
    SLUICE_GPU_UNROLL
    for (int h = 0; h < 8; ++h) raw.scales[h] = warp.load_byte(p + 192 + 2 * h, of_thread);
    return raw;
  }
  SLUICE_GPU void numbers(const Warp& warp, const Raw& raw, int h, Float (&even)[L], Float (&odd)[L]) const {
    const int part = h / 4, t = h % 4;
    const Float scale = warp.from_f16(raw.scale) * whole_number(warp, raw.scales[h] ^ Word(128), 128);
    const auto number = [&](int b) {
      const Word low = byte_of<Warp>(raw.low[2 * part + t % 2], b, t / 2 * 4, 15),
                 high = byte_of<Warp>(raw.high[part], b, 2 * t, 3);
      return scale * whole_number(warp, low | high << Word(4), 32);
    };
    SLUICE_GPU_UNROLL
    for (int i = 0; i < L; ++i) even[i] = number(2 * i), odd[i] = number(2 * i + 1);
  }
};

// A code of OCP's E2M1 as a number.
template <class Warp>
SLUICE_GPU typename Warp::Float fp4_number(const Warp& warp, typename Warp::Word code) {
  using Word = typename Warp::Word;
  // Its exponent and its mantissa as those of a very small float: exact, as subnormal numbers stay.
  return warp.number((code & Word(7)) << Word(22) | (code & Word(8)) << Word(28)) *
         typename Warp::Float(0x1p126f);
}
// OCP's E8M0 below 255.
template <class Warp>
SLUICE_GPU typename Warp::Float power_of_two(const Warp& warp, typename Warp::Word e) {
  using Word = typename Warp::Word;
  return warp.number(warp.select(e == Word(0), Word(0x00400000u), e << Word(23)));
}

template <class Warp, int L, bool kAligned>
class Mxfp4Row : public BlockRow<Warp, L, 32, 17> {
 public:
  using Base = BlockRow<Warp, L, 32, 17>;
  using Float = typename Warp::Float;
  using Word = typename Warp::Word;
  static constexpr int kWords = L == 1 ? 3 : 2;
  struct Raw {
    Word scale, codes[2 * L];
  };

  SLUICE_GPU Mxfp4Row(const Warp&, const ProductItem& item, const ProductSide& side, std::uint64_t first,
                      Word on, Word thread)
      : Base(item, side, first, on, thread),
        at_(this->row_ + thread * Word(2 * L) % Word(16)),
        shift_(thread * Word(2 * L) / Word(16) * Word(4)) {}
  SLUICE_GPU Raw load(const Warp& warp, std::uint32_t unit) const {
    const std::byte* const p = this->block(unit);
    Raw raw;
    raw.scale = warp.load_byte(p, this->row_);
    SLUICE_GPU_UNROLL
    for (int i = 0; i < 2 * L; ++i) raw.codes[i] = warp.load_byte(p + 1 + i, at_);
    return raw;
  }
  SLUICE_GPU void numbers(const Warp& warp, const Raw& raw, int, Float (&even)[L], Float (&odd)[L]) const {
    const Float scale = power_of_two(warp, raw.scale);
    SLUICE_GPU_UNROLL
    for (int i = 0; i < L; ++i) {
      even[i] = scale * fp4_number(warp, raw.codes[2 * i] >> shift_);
      odd[i] = scale * fp4_number(warp, raw.codes[2 * i + 1] >> shift_);
    }
  }

 private:
  Word at_, shift_;
};

template <class Warp, int L, bool kAligned>
class Mxfp4PairRow : public BlockRow<Warp, L, 32, 16, 1> {
 public:
  using Base = BlockRow<Warp, L, 32, 16, 1>;
  using Float = typename Warp::Float;
  using Word = typename Warp::Word;
  static constexpr int kWords = L == 1 ? 2 : 1;
  struct Raw {
    Word scale, codes;
  };

  SLUICE_GPU Mxfp4PairRow(const Warp&, const ProductItem& item, const ProductSide& side, std::uint64_t first,
                          Word on, Word thread)
      : Base(item, side, first, on, thread) {}
  SLUICE_GPU Raw load(const Warp& warp, std::uint32_t unit) const {
    return {
        warp.load_byte(this->other(unit), this->other_row_), BlockBytes < Warp,
        kAligned
            ? 16
            : 1 > ::template words<L>(warp, this->block(unit), this->row_ + this->thread_ * Word(L)).of[0]};
  }
  SLUICE_GPU void numbers(const Warp& warp, const Raw& raw, int, Float (&even)[L], Float (&odd)[L]) const {
    const Float scale = power_of_two(warp, raw.scale);
    SLUICE_GPU_UNROLL
    for (int i = 0; i < L; ++i) {
      const Word pair = raw.codes >> Word(static_cast<std::uint32_t>(8 * i));
      even[i] = scale * fp4_number(warp, pair);
      odd[i] = scale * fp4_number(warp, pair >> Word(4));
    }
  }
};

// Formats whose unit is 256 columns.
template <template <class, int, bool> class OwnRow>
inline constexpr bool kIsLarge = false;
template <>
inline constexpr bool kIsLarge<Q4KRow> = true;
template <>
inline constexpr bool kIsLarge<Q6KRow> = true;

// Formats of ProductKernel.
template <template <class, int, bool> class OwnRow, bool kAligned>
struct BlockFormat {
  static constexpr bool kWide = false, kLarge = kIsLarge<OwnRow>;
  template <class Warp, int L>
  using Row = OwnRow<Warp, L, kAligned>;
};

}  // namespace sluice::kernels::gpu
