// Lines of codes on NEON: four registers of four 32-bit lanes. See sliced_codes-inl.h.
#pragma once

#include "kernels/lanes/vec_neon-inl.h"

namespace sluice::kernels {
namespace {

struct CodeLine {
  uint32x4_t v[4];  // rows 0…3, 4…7, 8…11, 12…15
};

// Accumulators: 20 of the 32 registers.
inline constexpr int kSlicedVecs = 5;

// Calls f(register, register …) for all four.
template <class F, class... Lines>
[[gnu::always_inline]] inline CodeLine each_of_line(const F& f, const Lines&... lines) {
  return {{f(lines.v[0]...), f(lines.v[1]...), f(lines.v[2]...), f(lines.v[3]...)}};
}

// Lines are loaded again for every use: GCC 12 would keep all lines of a cell, more than fit in registers,
// and wrote them to the stack (5 tokens: 1198 of 2609 instructions, 220 of 1695 with the barrier).
inline CodeLine load_line(const std::byte* p) {
  asm volatile("" ::: "memory");
  const auto* const words = reinterpret_cast<const std::uint32_t*>(p);
  return {{vld1q_u32(words), vld1q_u32(words + 4), vld1q_u32(words + 8), vld1q_u32(words + 12)}};
}
inline void store_line(std::byte* p, CodeLine a) {
  for (int i = 0; i < 4; ++i) vst1q_u32(reinterpret_cast<std::uint32_t*>(p) + 4 * i, a.v[i]);
}
// Sixteen bytes, one to a lane.
inline CodeLine widen_bytes(const std::byte* p) {
  const uint8x16_t bytes = vld1q_u8(reinterpret_cast<const std::uint8_t*>(p));
  const uint16x8_t first = vmovl_u8(vget_low_u8(bytes)), second = vmovl_high_u8(bytes);
  return {{vmovl_u16(vget_low_u16(first)), vmovl_high_u16(first), vmovl_u16(vget_low_u16(second)),
           vmovl_high_u16(second)}};
}
inline CodeLine keep_bits(CodeLine a, unsigned bits) {
  return each_of_line([&](uint32x4_t x) { return vandq_u32(x, vdupq_n_u32(bits)); }, a);
}
inline CodeLine either(CodeLine a, CodeLine b) {
  return each_of_line([](uint32x4_t x, uint32x4_t y) { return vorrq_u32(x, y); }, a, b);
}
inline CodeLine differ(CodeLine a, CodeLine b) {
  return each_of_line([](uint32x4_t x, uint32x4_t y) { return veorq_u32(x, y); }, a, b);
}
inline CodeLine differ_bits(CodeLine a, unsigned bits) {
  return each_of_line([&](uint32x4_t x) { return veorq_u32(x, vdupq_n_u32(bits)); }, a);
}
// Uses operators, because intrinsics want counts that are constants before inlining.
inline CodeLine shift_right(CodeLine a, unsigned n) {
  return each_of_line([&](uint32x4_t x) { return x >> n; }, a);
}
inline CodeLine shift_left(CodeLine a, unsigned n) {
  return each_of_line([&](uint32x4_t x) { return x << n; }, a);
}
// Keeps the compiler from computing the line again for every use.
inline CodeLine in_registers(CodeLine a) {
  asm("" : "+w"(a.v[0]), "+w"(a.v[1]), "+w"(a.v[2]), "+w"(a.v[3]));
  return a;
}
inline Vec to_floats(CodeLine a) {
  return each([](uint32x4_t x) { return vcvtq_f32_s32(vreinterpretq_s32_u32(x)); }, a);
}

}  // namespace
}  // namespace sluice::kernels
