// Which bits of a block are an element's code, a sub-block's scale and its minimum, in plain code.
// docs/formats.md.
#pragma once

#include <cmath>
#include <cstddef>

#include "codec/blocks/block_format.h"

namespace sluice::codec::blocks {

// Codes of 5 bits: the fifth bits are those of a word of 32.
inline unsigned code5(const std::byte* high, const std::byte* low, unsigned i) {
  return nibble32(low, i) | (word32(high) >> i & 1) << 4;
}

// Where element i of a block of 256 has its two bits: 128 elements share 32 bytes, 32 of them the same two
// bits of each byte.
inline unsigned pair_of_bits(const std::byte* codes, unsigned i) {
  return byte(codes + i / 128 * 32 + i % 32) >> (i % 128 / 32 * 2) & 3;
}
// 64 elements share 32 bytes.
inline unsigned nibble64(const std::byte* codes, unsigned i) {
  return byte(codes + i / 64 * 32 + i % 32) >> (i % 64 / 32 * 4) & 15;
}

// Q4_K and Q5_K have six bits each for the scale and the minimum of a sub-block of 32.
struct ScaleAndMinimum {
  unsigned scale, minimum;
};
inline ScaleAndMinimum of_sub_block(const std::byte* codes, unsigned j) {
  const auto at = [&](unsigned k) { return byte(codes + k); };
  if (j < 4) return {at(j) & 63, at(j + 4) & 63};
  return {(at(j + 4) & 15) | (at(j - 4) >> 6) << 4, at(j + 4) >> 4 | (at(j) >> 6) << 4};
}

// A sub-block of 16 of Q3_K has six bits: four of them in the first eight bytes, two in the last four.
inline int q3k_scale(const std::byte* scales, unsigned j) {
  const unsigned low = byte(scales + j % 8) >> (j / 8 * 4) & 15,
                 high = byte(scales + 8 + j % 4) >> (j / 4 * 2) & 3;
  return static_cast<int>(low | high << 4) - 32;
}
inline int q3k_code(const std::byte* block, unsigned i) {
  const bool high = (byte(block + i % 32) >> (i / 32) & 1) != 0;
  return static_cast<int>(pair_of_bits(block + 32, i)) - (high ? 0 : 4);
}

inline unsigned q5k_code(const std::byte* block, unsigned i) {
  return nibble64(block + 48, i) | (byte(block + 16 + i % 32) >> (i / 32) & 1) << 4;
}

inline int q6k_code(const std::byte* block, unsigned i) {
  const unsigned part = i / 128, t = i % 128 / 32, c = i % 32;
  const unsigned low = byte(block + 64 * part + 32 * (t % 2) + c) >> (t / 2 * 4) & 15,
                 high = byte(block + 128 + 32 * part + c) >> (2 * t) & 3;
  return static_cast<int>(low | high << 4) - 32;
}

// A sub-block of 32 of IQ4_XS has six bits, too.
inline int iq4xs_scale(const std::byte* block, unsigned j) {
  const unsigned low = byte(block + 4 + j / 2) >> (j % 2 * 4) & 15, high = word16(block + 2) >> (2 * j) & 3u;
  return static_cast<int>(low | high << 4) - 32;
}

// OCP's E8M0; 255 is no number.
inline float power_of_two(std::byte e8m0) { return std::ldexp(1.F, static_cast<int>(byte(&e8m0)) - 127); }

}  // namespace sluice::codec::blocks
