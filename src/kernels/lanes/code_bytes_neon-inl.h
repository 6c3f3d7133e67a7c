// Thirty-two codes of a row on NEON, in order. See code_bytes-inl.h.
#pragma once

#include "kernels/lanes/vec_neon-inl.h"

// Must follow the include of the lanes.
#include "kernels/lanes/code_bytes-inl.h"

namespace sluice::kernels {
namespace {

// One row at a time for one token: its sums are four chains. Not measured.
inline constexpr int kBlockRows = 1;
inline constexpr int kBlockTileRows = kRows, kBlockTileTokens = kTokens;

struct CodeBytes {
  uint8x16_t v[2];
};

[[gnu::always_inline]] inline uint8x16_t sixteen_bytes(const std::byte* p) {
  return vld1q_u8(reinterpret_cast<const std::uint8_t*>(p));
}
[[gnu::always_inline]] inline CodeBytes load_codes(const std::byte* p) {
  return {{sixteen_bytes(p), sixteen_bytes(p + 16)}};
}
[[gnu::always_inline]] inline CodeBytes load_nibbles(const std::byte* p) {
  const uint8x16_t bytes = sixteen_bytes(p);
  return {{vandq_u8(bytes, vdupq_n_u8(15)), vshrq_n_u8(bytes, 4)}};
}
[[gnu::always_inline]] inline CodeBytes load_nibble_pairs(const std::byte* p) {
  const uint8x16_t bytes = sixteen_bytes(p), low = vandq_u8(bytes, vdupq_n_u8(15)),
                   high = vshrq_n_u8(bytes, 4);
  return {{vzip1q_u8(low, high), vzip2q_u8(low, high)}};
}
// Uses operators, because intrinsics want counts that are constants before inlining.
[[gnu::always_inline]] inline CodeBytes shift_right(CodeBytes a, unsigned n) {
  return {{a.v[0] >> static_cast<std::uint8_t>(n), a.v[1] >> static_cast<std::uint8_t>(n)}};
}
[[gnu::always_inline]] inline CodeBytes shift_left(CodeBytes a, unsigned n) {
  return {{a.v[0] << static_cast<std::uint8_t>(n), a.v[1] << static_cast<std::uint8_t>(n)}};
}
[[gnu::always_inline]] inline CodeBytes keep_bits(CodeBytes a, unsigned bits) {
  const uint8x16_t mask = vdupq_n_u8(static_cast<std::uint8_t>(bits));
  return {{vandq_u8(a.v[0], mask), vandq_u8(a.v[1], mask)}};
}
[[gnu::always_inline]] inline CodeBytes either(CodeBytes a, CodeBytes b) {
  return {{vorrq_u8(a.v[0], b.v[0]), vorrq_u8(a.v[1], b.v[1])}};
}
[[gnu::always_inline]] inline CodeBytes minus(CodeBytes a, int n) {
  const uint8x16_t all = vdupq_n_u8(static_cast<std::uint8_t>(n));
  return {{vsubq_u8(a.v[0], all), vsubq_u8(a.v[1], all)}};
}
[[gnu::always_inline]] inline CodeBytes spread_bits(std::uint32_t word) {
  const uint8x16_t bits = vreinterpretq_u8_u64(vdupq_n_u64(0x8040201008040201));
  const auto half = [&](std::uint32_t two) {  // bytes, of which each becomes eight
    return vtstq_u8(vcombine_u8(vdup_n_u8(static_cast<std::uint8_t>(two)),
                                vdup_n_u8(static_cast<std::uint8_t>(two >> 8))),
                    bits);
  };
  return {{half(word), half(word >> 16)}};
}

[[gnu::always_inline]] inline float half_at(const std::byte* p) {
  std::uint16_t word;
  __builtin_memcpy(&word, p, sizeof(word));
  return vgetq_lane_f32(vcvt_f32_f16(vreinterpret_f16_u16(vdup_n_u16(word))), 0);
}

// Columns 0 … 15 or 16 … 31 of 32 codes, moved to the top of words of 32 bits, as numbers: two registers of
// four even columns, and two of odd ones.
struct HalfColumns {
  float32x4_t even[2], odd[2];
};
[[gnu::always_inline]] inline HalfColumns half_times_2_24(uint8x16_t codes) {
  const uint8x16_t none = vdupq_n_u8(0);
  const auto top = vdupq_n_u32(0xff000000u);
  HalfColumns half;
  const uint8x16_t words[2] = {vzip1q_u8(none, codes), vzip2q_u8(none, codes)};
#pragma GCC unroll 2
  for (int i = 0; i < 2; ++i) {
    const uint32x4_t pairs = vreinterpretq_u32_u8(words[i]);
    half.even[i] = vcvtq_f32_s32(vreinterpretq_s32_u32(vshlq_n_u32(pairs, 16)));
    half.odd[i] = vcvtq_f32_s32(vreinterpretq_s32_u32(vandq_u32(pairs, top)));
  }
  return half;
}
[[gnu::always_inline]] inline Columns columns_of(const HalfColumns& first, const HalfColumns& second) {
  return {{{first.even[0], first.even[1], second.even[0], second.even[1]}},
          {{first.odd[0], first.odd[1], second.odd[0], second.odd[1]}}};
}
[[gnu::always_inline]] inline Columns numbers_times_2_24(CodeBytes a) {
  return columns_of(half_times_2_24(a.v[0]), half_times_2_24(a.v[1]));
}

[[gnu::always_inline]] inline Columns numbers_of(CodeBytes a, const NibbleTable& table) {
  const uint8x16_t lows = vld1q_u8(table.low), highs = vld1q_u8(table.high);
  const auto half = [&](uint8x16_t codes) {
    const uint8x16_t low = vqtbl1q_u8(lows, codes), high = vqtbl1q_u8(highs, codes);
    const uint32x4_t top = vdupq_n_u32(0xffff0000u);
    const uint32x4_t words[2] = {vreinterpretq_u32_u8(vzip1q_u8(low, high)),
                                 vreinterpretq_u32_u8(vzip2q_u8(low, high))};
    HalfColumns numbers;
#pragma GCC unroll 2
    for (int i = 0; i < 2; ++i) {
      numbers.even[i] = vreinterpretq_f32_u32(vshlq_n_u32(words[i], 16));
      numbers.odd[i] = vreinterpretq_f32_u32(vandq_u32(words[i], top));
    }
    return numbers;
  };
  return columns_of(half(a.v[0]), half(a.v[1]));
}

[[gnu::always_inline]] inline Vec two_halves(float first, float second) {
  const float32x4_t a = vdupq_n_f32(first), b = vdupq_n_f32(second);
  return {{a, a, b, b}};
}
[[gnu::always_inline]] inline Vec of_bytes(std::uint64_t low, std::uint64_t high) {
  const int16x8_t first = vmovl_s8(vcreate_s8(low)), second = vmovl_s8(vcreate_s8(high));
  return {{I8::wide(vget_low_s16(first)), I8::wide(vget_high_s16(first)), I8::wide(vget_low_s16(second)),
           I8::wide(vget_high_s16(second))}};
}

}  // namespace
}  // namespace sluice::kernels
