// Lines of codes on AVX-512: sixteen 32-bit lanes. See sliced_codes-inl.h.
#pragma once

#include "kernels/lanes/vec_avx512-inl.h"

namespace sluice::kernels {
namespace {

struct CodeLine {
  __m512i v;  // rows 0…15
};

// Accumulators: 24 of the 32 registers.
inline constexpr int kSlicedVecs = 24;

inline CodeLine load_line(const std::byte* p) { return {_mm512_loadu_si512(p)}; }
inline void store_line(std::byte* p, CodeLine a) { _mm512_storeu_si512(p, a.v); }
// Sixteen bytes, one to a lane.
inline CodeLine widen_bytes(const std::byte* p) {
  return {_mm512_cvtepu8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)))};
}
inline CodeLine keep_bits(CodeLine a, unsigned bits) {
  return {_mm512_and_si512(a.v, _mm512_set1_epi32(static_cast<int>(bits)))};
}
inline CodeLine either(CodeLine a, CodeLine b) { return {_mm512_or_si512(a.v, b.v)}; }
inline CodeLine differ(CodeLine a, CodeLine b) { return {_mm512_xor_si512(a.v, b.v)}; }
inline CodeLine differ_bits(CodeLine a, unsigned bits) {
  return {_mm512_xor_si512(a.v, _mm512_set1_epi32(static_cast<int>(bits)))};
}
inline CodeLine shift_right(CodeLine a, unsigned n) { return {_mm512_srli_epi32(a.v, n)}; }
inline CodeLine shift_left(CodeLine a, unsigned n) { return {_mm512_slli_epi32(a.v, n)}; }
inline CodeLine in_registers(CodeLine a) { return a; }  // there are enough registers
inline Vec to_floats(CodeLine a) { return {_mm512_cvtepi32_ps(a.v)}; }

// For integer-inl.h, with and without VNNI.
inline CodeLine no_sums() { return {_mm512_setzero_si512()}; }
inline CodeLine four_codes(const std::byte* p) {
  int word;
  __builtin_memcpy(&word, p, sizeof(word));
  return {_mm512_set1_epi32(word)};
}
inline CodeLine add_lines(CodeLine a, CodeLine b) { return {_mm512_add_epi32(a.v, b.v)}; }

}  // namespace
}  // namespace sluice::kernels
