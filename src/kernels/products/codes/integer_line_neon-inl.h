// Sums of products of codes on NEON. See integer-inl.h.
//
// SMULL takes signed numbers of 8 bits, so wider codes are multiplied in two planes of 4 bits. Two
// products of the largest codes and activations stay below 2^15 (2·127·127 = 32258), so that pairs are added
// in 16 bits.
#pragma once

#include "kernels/lanes/code_line_neon-inl.h"

namespace sluice::kernels {
namespace {

inline constexpr unsigned kMostCode = 127;
// Sums: 20 and 16 of the 32 registers.
inline constexpr int kIntegerTokens[] = {5, 2};

inline CodeLine no_sums() {
  const uint32x4_t none = vdupq_n_u32(0);
  return {{none, none, none, none}};
}
inline CodeLine four_codes(const std::byte* p) {
  std::uint32_t word;
  __builtin_memcpy(&word, p, sizeof(word));
  const uint32x4_t all = vdupq_n_u32(word);
  return {{all, all, all, all}};
}
inline uint32x4_t add_products(uint32x4_t sums, uint32x4_t codes, uint32x4_t x) {
  const int8x16_t a = vreinterpretq_s8_u32(codes), b = vreinterpretq_s8_u32(x);
  const int16x8_t pairs = vpaddq_s16(vmull_s8(vget_low_s8(a), vget_low_s8(b)), vmull_high_s8(a, b));
  return vreinterpretq_u32_s32(vpadalq_s16(vreinterpretq_s32_u32(sums), pairs));
}
inline CodeLine add_products(CodeLine sums, CodeLine codes, CodeLine x) {
  return each_of_line(
      [](uint32x4_t sum, uint32x4_t code, uint32x4_t y) { return add_products(sum, code, y); }, sums, codes,
      x);
}
inline CodeLine whole_sums(CodeLine sums, unsigned shift) { return shift_left(sums, shift); }
inline CodeLine add_lines(CodeLine a, CodeLine b) {
  return each_of_line([](uint32x4_t x, uint32x4_t y) { return vaddq_u32(x, y); }, a, b);
}

}  // namespace
}  // namespace sluice::kernels
