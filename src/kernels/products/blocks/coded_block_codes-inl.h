// What the blocks of each format hold for products with activations in codes (coded_blocks.h), over the
// lanes of an instruction set: eight groups of 32 columns at a time, a strip.
//
// A format has kColumns and kBytes of a block, kOtherBytes of it in the second plane, codes(p, h), which are
// those of group h of the strip that begins at p, and
//   kMost                  the largest code; 0: signed ones of 8 bits
//   kZero                  what is subtracted from each code
//   kHalves                a group's halves have scales of their own: half_scales(p)
//   scales(p, other, n)    a of eight groups, of which n are there
//   kMinima                minima(p, n), b of eight groups; with halves half_minima(p) also
#pragma once

#include "kernels/products/blocks/block_bits-inl.h"
#include "kernels/products/blocks/coded_blocks_impl.h"

namespace sluice::kernels {
namespace {

// Binary16 numbers of the first n of eight blocks; 0 of the others.
template <std::size_t kBytes>
[[gnu::always_inline]] inline Float8 halves_at(const std::byte* p, unsigned n) {
  std::uint16_t halves[8] = {};
  if (n == 8) {
#pragma GCC unroll 8
    for (unsigned g = 0; g < 8; ++g) halves[g] = word_at<std::uint16_t>(p + g * kBytes);
  } else {
    for (unsigned g = 0; g < n; ++g) halves[g] = word_at<std::uint16_t>(p + g * kBytes);
  }
  return of_halves(halves);
}
// Bytes likewise.
template <std::size_t kBytes>
[[gnu::always_inline]] inline std::uint64_t bytes_at(const std::byte* p, unsigned n) {
  std::uint64_t bytes = 0;
  if (n == 8) {
#pragma GCC unroll 8
    for (unsigned g = 0; g < 8; ++g) bytes |= static_cast<std::uint64_t>(p[g * kBytes]) << 8 * g;
  } else {
    for (unsigned g = 0; g < n; ++g) bytes |= static_cast<std::uint64_t>(p[g * kBytes]) << 8 * g;
  }
  return bytes;
}

inline constexpr ByteTable kIq4Bytes = {
    {-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113}};
inline constexpr int kFp4Zero = 12;  // twice the numbers, plus 12
inline constexpr ByteTable kFp4Bytes = {{12, 13, 14, 15, 16, 18, 20, 24, 12, 11, 10, 9, 8, 6, 4, 0}};

struct PlainCoded {
  static constexpr std::size_t kOtherBytes = 0;
  static constexpr int kZero = 0;
  static constexpr bool kHalves = false, kMinima = false;
};

// Blocks of 32 columns that begin with a binary16.
template <std::size_t kAll>
struct CodedGroups : PlainCoded {
  static constexpr std::size_t kColumns = 32, kBytes = kAll;
  [[gnu::always_inline]] static Float8 scales(const std::byte* p, const std::byte*, unsigned n) {
    return halves_at<kBytes>(p, n);
  }
};
// Another follows, which is added: a minimum with a minus.
template <std::size_t kAll>
struct CodedGroupsPlus : CodedGroups<kAll> {
  static constexpr bool kMinima = true;
  [[gnu::always_inline]] static Float8 minima(const std::byte* p, unsigned n) {
    return times(halves_at<kAll>(p + 2, n), all_equal(-1));
  }
};

struct CodedQ80 : CodedGroups<34> {
  static constexpr unsigned kMost = 0;
  [[gnu::always_inline]] static CodeBytes codes(const std::byte* p, unsigned h) {
    return load_codes(p + kBytes * h + 2);
  }
};
struct CodedQ40 : CodedGroups<18> {
  static constexpr unsigned kMost = 15;
  static constexpr int kZero = 8;
  [[gnu::always_inline]] static CodeBytes codes(const std::byte* p, unsigned h) {
    return load_nibbles(p + kBytes * h + 2);
  }
};
struct CodedIq4Nl : CodedGroups<18> {
  static constexpr unsigned kMost = 0;
  [[gnu::always_inline]] static CodeBytes codes(const std::byte* p, unsigned h) {
    return bytes_of(load_nibbles(p + kBytes * h + 2), kIq4Bytes);
  }
};
struct CodedQ50 : CodedGroups<22> {
  static constexpr unsigned kMost = 31;
  static constexpr int kZero = 16;
  [[gnu::always_inline]] static CodeBytes codes(const std::byte* p, unsigned h) {
    return load_fives(p + kBytes * h + 2, p + kBytes * h + 6);
  }
};
struct CodedQ41 : CodedGroupsPlus<20> {
  static constexpr unsigned kMost = 15;
  [[gnu::always_inline]] static CodeBytes codes(const std::byte* p, unsigned h) {
    return load_nibbles(p + kBytes * h + 4);
  }
};
struct CodedQ51 : CodedGroupsPlus<24> {
  static constexpr unsigned kMost = 31;
  [[gnu::always_inline]] static CodeBytes codes(const std::byte* p, unsigned h) {
    return load_fives(p + kBytes * h + 4, p + kBytes * h + 8);
  }
};

struct CodedMxfp4 : PlainCoded {
  static constexpr std::size_t kColumns = 32, kBytes = 17;
  static constexpr unsigned kMost = 24;
  static constexpr int kZero = kFp4Zero;
  [[gnu::always_inline]] static CodeBytes codes(const std::byte* p, unsigned h) {
    return bytes_of(load_nibbles(p + kBytes * h + 1), kFp4Bytes);
  }
  [[gnu::always_inline]] static Float8 scales(const std::byte* p, const std::byte*, unsigned n) {
    return half_powers(bytes_at<kBytes>(p, n));
  }
};
struct CodedMxfp4Pair : PlainCoded {
  static constexpr std::size_t kColumns = 32, kBytes = 16, kOtherBytes = 1;
  static constexpr unsigned kMost = 24;
  static constexpr int kZero = kFp4Zero;
  [[gnu::always_inline]] static CodeBytes codes(const std::byte* p, unsigned h) {
    return bytes_of(load_nibble_pairs(p + kBytes * h), kFp4Bytes);
  }
  [[gnu::always_inline]] static Float8 scales(const std::byte*, const std::byte* other, unsigned n) {
    return half_powers(bytes_at<1>(other, n));
  }
};

// Blocks of 256 columns: a strip is a block.
struct CodedBlock : PlainCoded {
  static constexpr std::size_t kColumns = 256;
};
template <std::size_t kScale>
struct CodedBlockWithHalves : CodedBlock {
  static constexpr bool kHalves = true;
  [[gnu::always_inline]] static Float8 scales(const std::byte* p, const std::byte*, unsigned) {
    return all_equal(half_at(p + kScale));
  }
};

struct SixBitCoded : CodedBlock {
  static constexpr bool kMinima = true;
  [[gnu::always_inline]] static Float8 scales(const std::byte* p, const std::byte*, unsigned) {
    return times(of_signed(six_bit_codes(p).scales), all_equal(half_at(p)));
  }
  [[gnu::always_inline]] static Float8 minima(const std::byte* p, unsigned) {
    return times(of_signed(six_bit_codes(p).minima), all_equal(half_at(p + 2)));
  }
};
struct CodedQ4K : SixBitCoded {
  static constexpr std::size_t kBytes = 144;
  static constexpr unsigned kMost = 15;
  [[gnu::always_inline]] static CodeBytes codes(const std::byte* p, unsigned h) {
    return nibbles_of_64(p + 16, h);
  }
};
struct CodedQ5K : SixBitCoded {
  static constexpr std::size_t kBytes = 176;
  static constexpr unsigned kMost = 31;
  [[gnu::always_inline]] static CodeBytes codes(const std::byte* p, unsigned h) { return q5k_codes(p, h); }
};

struct CodedQ6K : CodedBlockWithHalves<208> {
  static constexpr std::size_t kBytes = 210;
  static constexpr unsigned kMost = 63;
  static constexpr int kZero = 32;
  [[gnu::always_inline]] static CodeBytes codes(const std::byte* p, unsigned h) { return q6k_codes(p, h); }
  [[gnu::always_inline]] static Scales16 half_scales(const std::byte* p) {
    return sixteen_scales(word_at<std::uint64_t>(p + 192), word_at<std::uint64_t>(p + 200), 0);
  }
};

struct CodedQ3K : CodedBlockWithHalves<108> {
  static constexpr std::size_t kBytes = 110;
  static constexpr unsigned kMost = 7;
  static constexpr int kZero = 4;
  [[gnu::always_inline]] static CodeBytes codes(const std::byte* p, unsigned h) { return q3k_codes(p, h); }
  [[gnu::always_inline]] static Scales16 half_scales(const std::byte* p) {
    const Q3kScales scales = q3k_scales(p + 96);
    return sixteen_scales(scales.low, scales.high, 32);
  }
};

struct CodedQ2K : CodedBlockWithHalves<80> {
  static constexpr std::size_t kBytes = 84;
  static constexpr unsigned kMost = 3;
  static constexpr bool kMinima = true;
  [[gnu::always_inline]] static CodeBytes codes(const std::byte* p, unsigned h) {
    return pairs_of_128(p + 16, h, 0);
  }
  template <unsigned kShift>
  [[gnu::always_inline]] static Scales16 nibbles(const std::byte* p) {
    return sixteen_scales(word_at<std::uint64_t>(p) >> kShift & kLowNibbles,
                          word_at<std::uint64_t>(p + 8) >> kShift & kLowNibbles, 0);
  }
  [[gnu::always_inline]] static Scales16 half_scales(const std::byte* p) { return nibbles<0>(p); }
  [[gnu::always_inline]] static Scales16 half_minima(const std::byte* p) { return nibbles<4>(p); }
  [[gnu::always_inline]] static Float8 minima(const std::byte* p, unsigned) {
    return all_equal(half_at(p + 82));
  }
};

struct CodedIq4Xs : CodedBlock {
  static constexpr std::size_t kBytes = 136;
  static constexpr unsigned kMost = 0;
  [[gnu::always_inline]] static CodeBytes codes(const std::byte* p, unsigned h) {
    return bytes_of(load_nibbles(p + 8 + 16 * h), kIq4Bytes);
  }
  [[gnu::always_inline]] static Float8 scales(const std::byte* p, const std::byte*, unsigned) {
    constexpr std::uint64_t kAll32 = 0x2020202020202020;
    // Bytes below 64 less 32: with the top bit set, no byte borrows of its neighbour.
    const std::uint64_t less = ((iq4xs_scales(p) | 0x8080808080808080) - kAll32) ^ 0x8080808080808080;
    return times(of_signed(less), all_equal(half_at(p)));
  }
};

}  // namespace
}  // namespace sluice::kernels
