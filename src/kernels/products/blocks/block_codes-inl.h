// What the blocks of each format hold (docs/formats.md), over the lanes of an instruction set.
//
// A format has kColumns, kBytes, a constructor that reads a block's scales, and columns(h), the numbers of
// columns 32h … 32h+31 of the block exactly as codec/blocks defines them. kOtherBytes: bytes of the second
// plane for a block, 0 where there is one.
#pragma once

#include "kernels/lanes/code_bytes-inl.h"
#include "kernels/lanes/vec-inl.h"
#include "kernels/products/blocks/block_bits-inl.h"

namespace sluice::kernels {
namespace {

inline constexpr float kUnit = 0x1p-24f;  // takes back the factor of numbers_times_2_24()

inline constexpr NibbleTable kCounts = nibble_table(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
inline constexpr NibbleTable kFromMinus8 =
    nibble_table(-8, -7, -6, -5, -4, -3, -2, -1, 0, 1, 2, 3, 4, 5, 6, 7);
inline constexpr NibbleTable kFromMinus4 = nibble_table(-4, -3, -2, -1, 0, 1, 2, 3, 0, 0, 0, 0, 0, 0, 0, 0);
inline constexpr NibbleTable kIq4Numbers =
    nibble_table(-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113);
inline constexpr NibbleTable kFp4Numbers = nibble_table(0, .5F, 1, 1.5F, 2, 3, 4, 6,  //
                                                        -0.F, -.5F, -1, -1.5F, -2, -3, -4, -6);

[[gnu::always_inline]] inline Columns times(Columns numbers, Vec scale) {
  return {mul(numbers.even, scale), mul(numbers.odd, scale)};
}
[[gnu::always_inline]] inline Columns times_plus(Columns numbers, Vec scale, Vec minimum) {
  return {fma(numbers.even, scale, minimum), fma(numbers.odd, scale, minimum)};
}

struct OnePlane {
  static constexpr std::size_t kOtherBytes = 0;
};

// Blocks of 32 columns.

struct Q80 : OnePlane {
  static constexpr std::size_t kColumns = 32, kBytes = 34;
  const std::byte* block;
  Vec scale;
  explicit Q80(const std::byte* p, const std::byte*) : block(p), scale(set1(half_at(p) * kUnit)) {}
  [[gnu::always_inline]] Columns columns(unsigned) const {
    return times(numbers_times_2_24(load_codes(block + 2)), scale);
  }
};

// A binary16, then codes of four bits.
template <const NibbleTable& kTable>
struct ScaledNibbles : OnePlane {
  static constexpr std::size_t kColumns = 32, kBytes = 18;
  const std::byte* block;
  Vec scale;
  explicit ScaledNibbles(const std::byte* p, const std::byte*) : block(p), scale(set1(half_at(p))) {}
  [[gnu::always_inline]] Columns columns(unsigned) const {
    return times(numbers_of(load_nibbles(block + 2), kTable), scale);
  }
};
using Q40 = ScaledNibbles<kFromMinus8>;
using Iq4Nl = ScaledNibbles<kIq4Numbers>;

struct Q41 : OnePlane {
  static constexpr std::size_t kColumns = 32, kBytes = 20;
  const std::byte* block;
  Vec scale, minimum;
  explicit Q41(const std::byte* p, const std::byte*)
      : block(p), scale(set1(half_at(p))), minimum(set1(half_at(p + 2))) {}
  [[gnu::always_inline]] Columns columns(unsigned) const {
    return times_plus(numbers_of(load_nibbles(block + 4), kCounts), scale, minimum);
  }
};

struct Q50 : OnePlane {
  static constexpr std::size_t kColumns = 32, kBytes = 22;
  const std::byte* block;
  Vec scale;
  explicit Q50(const std::byte* p, const std::byte*) : block(p), scale(set1(half_at(p) * kUnit)) {}
  [[gnu::always_inline]] Columns columns(unsigned) const {
    return times(numbers_times_2_24(minus(load_fives(block + 2, block + 6), 16)), scale);
  }
};

struct Q51 : OnePlane {
  static constexpr std::size_t kColumns = 32, kBytes = 24;
  const std::byte* block;
  Vec scale, minimum;
  explicit Q51(const std::byte* p, const std::byte*)
      : block(p), scale(set1(half_at(p) * kUnit)), minimum(set1(half_at(p + 2))) {}
  [[gnu::always_inline]] Columns columns(unsigned) const {
    return times_plus(numbers_times_2_24(load_fives(block + 4, block + 8)), scale, minimum);
  }
};

// 2^(e − 127), a subnormal number for 0.
[[gnu::always_inline]] inline Vec power_of_two(std::byte e8m0) {
  const auto e = static_cast<std::uint32_t>(e8m0);
  return set1(__builtin_bit_cast(float, e == 0 ? std::uint32_t{0x00400000} : e << 23));
}

struct Mxfp4 : OnePlane {
  static constexpr std::size_t kColumns = 32, kBytes = 17;
  const std::byte* block;
  Vec scale;
  explicit Mxfp4(const std::byte* p, const std::byte*) : block(p), scale(power_of_two(*p)) {}
  [[gnu::always_inline]] Columns columns(unsigned) const {
    return times(numbers_of(load_nibbles(block + 1), kFp4Numbers), scale);
  }
};

struct Mxfp4Pair {
  static constexpr std::size_t kColumns = 32, kBytes = 16, kOtherBytes = 1;
  const std::byte* codes;
  Vec scale;
  explicit Mxfp4Pair(const std::byte* p, const std::byte* other) : codes(p), scale(power_of_two(*other)) {}
  [[gnu::always_inline]] Columns columns(unsigned) const {
    return times(numbers_of(load_nibble_pairs(codes), kFp4Numbers), scale);
  }
};

// Blocks of 256 columns. Their scales are codes, made numbers all at once.

// A scale and a minimum for each 32 columns, as Q4_K and Q5_K have them at byte 4 of the block.
struct SixBitScales {
  alignas(64) float numbers[16];  // scales, then the minima with a minus
  SixBitScales(const std::byte* block, float unit) {
    const SixBitCodes codes = six_bit_codes(block);
    store(numbers,
          mul(of_bytes(codes.scales, codes.minima), two_halves(half_at(block) * unit, -half_at(block + 2))));
  }
  [[gnu::always_inline]] Vec scale(unsigned h) const { return set1(numbers[h]); }
  [[gnu::always_inline]] Vec minimum(unsigned h) const { return set1(numbers[8 + h]); }
};

struct Q4K : OnePlane {
  static constexpr std::size_t kColumns = 256, kBytes = 144;
  const std::byte* block;
  SixBitScales scales;
  explicit Q4K(const std::byte* p, const std::byte*) : block(p), scales(p, 1) {}
  [[gnu::always_inline]] Columns columns(unsigned h) const {
    return times_plus(numbers_of(nibbles_of_64(block + 16, h), kCounts), scales.scale(h), scales.minimum(h));
  }
};

struct Q5K : OnePlane {
  static constexpr std::size_t kColumns = 256, kBytes = 176;
  const std::byte* block;
  SixBitScales scales;
  explicit Q5K(const std::byte* p, const std::byte*) : block(p), scales(p, kUnit) {}
  [[gnu::always_inline]] Columns columns(unsigned h) const {
    return times_plus(numbers_times_2_24(q5k_codes(block, h)), scales.scale(h), scales.minimum(h));
  }
};

// Numbers for each 16 columns.
struct Sixteen {
  alignas(64) float numbers[16];
  explicit Sixteen(Vec all) { store(numbers, all); }
  [[gnu::always_inline]] Vec of(unsigned h) const { return two_halves(numbers[2 * h], numbers[2 * h + 1]); }
};

struct Q6K : OnePlane {
  static constexpr std::size_t kColumns = 256, kBytes = 210;
  const std::byte* block;
  Sixteen scales;
  explicit Q6K(const std::byte* p, const std::byte*)
      : block(p),
        scales(mul(of_bytes(word_at<std::uint64_t>(p + 192), word_at<std::uint64_t>(p + 200)),
                   set1(half_at(p + 208) * kUnit))) {}
  [[gnu::always_inline]] Columns columns(unsigned h) const {
    return times(numbers_times_2_24(minus(q6k_codes(block, h), 32)), scales.of(h));
  }
};

struct Q2K : OnePlane {
  static constexpr std::size_t kColumns = 256, kBytes = 84;
  const std::byte* block;
  Sixteen scales, minima;
  static Vec codes(const std::byte* p, unsigned shift) {
    return of_bytes(word_at<std::uint64_t>(p) >> shift & kLowNibbles,
                    word_at<std::uint64_t>(p + 8) >> shift & kLowNibbles);
  }
  explicit Q2K(const std::byte* p, const std::byte*)
      : block(p),
        scales(mul(codes(p, 0), set1(half_at(p + 80)))),
        minima(mul(codes(p, 4), set1(-half_at(p + 82)))) {}
  [[gnu::always_inline]] Columns columns(unsigned h) const {
    return times_plus(numbers_of(pairs_of_128(block + 16, h, 0), kCounts), scales.of(h), minima.of(h));
  }
};

struct Q3K : OnePlane {
  static constexpr std::size_t kColumns = 256, kBytes = 110;
  const std::byte* block;
  Sixteen scales;
  static Vec codes(const std::byte* p) {
    const Q3kScales scales = q3k_scales(p);
    return sub(of_bytes(scales.low, scales.high), set1(32));
  }
  explicit Q3K(const std::byte* p, const std::byte*)
      : block(p), scales(mul(codes(p + 96), set1(half_at(p + 108)))) {}
  [[gnu::always_inline]] Columns columns(unsigned h) const {
    return times(numbers_of(q3k_codes(block, h), kFromMinus4), scales.of(h));
  }
};

struct Iq4Xs : OnePlane {
  static constexpr std::size_t kColumns = 256, kBytes = 136;
  const std::byte* block;
  alignas(64) float scales[16];  // eight of them
  explicit Iq4Xs(const std::byte* p, const std::byte*) : block(p) {
    store(scales, mul(sub(of_bytes(iq4xs_scales(p), 0), set1(32)), set1(half_at(p))));
  }
  [[gnu::always_inline]] Columns columns(unsigned h) const {
    return times(numbers_of(load_nibbles(block + 8 + 16 * h), kIq4Numbers), set1(scales[h]));
  }
};

}  // namespace
}  // namespace sluice::kernels
