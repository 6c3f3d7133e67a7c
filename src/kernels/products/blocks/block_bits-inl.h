// Where the bits of codes and scales are in a block (docs/formats.md), over the CodeBytes of an instruction
// set.
#pragma once

#include <cstddef>
#include <cstdint>

namespace sluice::kernels {
namespace {

template <class Word>
[[gnu::always_inline]] inline Word word_at(const std::byte* p) {
  Word word;
  __builtin_memcpy(&word, p, sizeof(word));
  return word;
}

// Bits [n, n + count) of every code, moved to `to`.
[[gnu::always_inline]] inline CodeBytes bits_to(CodeBytes a, unsigned n, unsigned count, unsigned to) {
  const CodeBytes moved = n < to ? shift_left(a, to - n) : n > to ? shift_right(a, n - to) : a;
  return keep_bits(moved, ((1u << count) - 1) << to);
}

// Codes of five bits: the fifth ones are a word.
[[gnu::always_inline]] inline CodeBytes load_fives(const std::byte* fifth, const std::byte* nibbles) {
  return either(load_nibbles(nibbles), keep_bits(spread_bits(word_at<std::uint32_t>(fifth)), 16));
}

inline constexpr std::uint64_t kLowNibbles = 0x0f0f0f0f0f0f0f0f;
inline constexpr std::uint32_t kLowPairs = 0x03030303;
constexpr std::uint64_t two_words(std::uint32_t low, std::uint32_t high) {
  return low | std::uint64_t{high} << 32;
}

// Codes of scales and minima for each 32 columns, as Q4_K and Q5_K have them at byte 4 of the block.
struct SixBitCodes {
  std::uint64_t scales, minima;
};
[[gnu::always_inline]] inline SixBitCodes six_bit_codes(const std::byte* block) {
  const auto a = word_at<std::uint32_t>(block + 4), b = word_at<std::uint32_t>(block + 8),
             c = word_at<std::uint32_t>(block + 12);
  constexpr std::uint32_t kSix = 0x3f3f3f3f, kNibbles = 0x0f0f0f0f;
  return {two_words(a & kSix, (c & kNibbles) | (a >> 6 & kLowPairs) << 4),
          two_words(b & kSix, (c >> 4 & kNibbles) | (b >> 6 & kLowPairs) << 4)};
}

// Codes of scales for each 16 columns of Q3_K, plus 32.
struct Q3kScales {
  std::uint64_t low, high;
};
[[gnu::always_inline]] inline Q3kScales q3k_scales(const std::byte* p) {
  const auto low = word_at<std::uint64_t>(p);
  const auto high = word_at<std::uint32_t>(p + 8);
  const auto pairs = [high](unsigned shift) { return (high >> shift & kLowPairs) << 4; };
  return {(low & kLowNibbles) | two_words(pairs(0), pairs(2)),
          (low >> 4 & kLowNibbles) | two_words(pairs(4), pairs(6))};
}

// Codes of scales for each 32 columns of IQ4_XS, plus 32: two bits and four bits of each of eight, moved from
// one after the other to a byte each.
[[gnu::always_inline]] inline std::uint64_t iq4xs_scales(const std::byte* block) {
  std::uint64_t codes = 0;
  const auto low = word_at<std::uint32_t>(block + 4);
  const auto high = word_at<std::uint16_t>(block + 2);
#pragma GCC unroll 8
  for (unsigned j = 0; j < 8; ++j)
    codes |= std::uint64_t{(low >> 4 * j & 15) | (high >> 2 * j & 3u) << 4} << 8 * j;
  return codes;
}

// 64 columns share 32 bytes.
[[gnu::always_inline]] inline CodeBytes nibbles_of_64(const std::byte* codes, unsigned h) {
  return bits_to(load_codes(codes + 32 * (h / 2)), 4 * (h % 2), 4, 0);
}
// 128 columns share 32 bytes.
[[gnu::always_inline]] inline CodeBytes pairs_of_128(const std::byte* codes, unsigned h, unsigned to) {
  return bits_to(load_codes(codes + 32 * (h / 4)), 2 * (h % 4), 2, to);
}

// Columns 32h … 32h+31 of a block: codes below 32, below 64 and below 8.
[[gnu::always_inline]] inline CodeBytes q5k_codes(const std::byte* block, unsigned h) {
  return either(nibbles_of_64(block + 48, h), bits_to(load_codes(block + 16), h, 1, 4));
}
[[gnu::always_inline]] inline CodeBytes q6k_codes(const std::byte* block, unsigned h) {
  const unsigned part = h / 4, t = h % 4;
  const CodeBytes low = bits_to(load_codes(block + 64 * part + 32 * (t % 2)), 4 * (t / 2), 4, 0);
  return either(low, pairs_of_128(block + 128, h, 4));
}
[[gnu::always_inline]] inline CodeBytes q3k_codes(const std::byte* block, unsigned h) {
  return either(pairs_of_128(block + 32, h, 0), bits_to(load_codes(block), h, 1, 2));
}

}  // namespace
}  // namespace sluice::kernels
