// Lines of codes on AVX2: two registers of eight 32-bit lanes. See sliced_codes-inl.h.
#pragma once

#include "kernels/lanes/vec_avx2-inl.h"

namespace sluice::kernels {
namespace {

struct CodeLine {
  __m256i lo, hi;  // rows 0…7, 8…15
};

// Accumulators: 12 of the 16 registers.
inline constexpr int kSlicedVecs = 6;

inline CodeLine load_line(const std::byte* p) {
  return {_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)),
          _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p + 32))};
}
inline void store_line(std::byte* p, CodeLine a) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), a.lo);
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p + 32), a.hi);
}
// Sixteen bytes, one to a lane.
inline CodeLine widen_bytes(const std::byte* p) {
  return {_mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(p))),
          _mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(p + 8)))};
}
inline CodeLine keep_bits(CodeLine a, unsigned bits) {
  const __m256i mask = _mm256_set1_epi32(static_cast<int>(bits));
  return {_mm256_and_si256(a.lo, mask), _mm256_and_si256(a.hi, mask)};
}
inline CodeLine either(CodeLine a, CodeLine b) {
  return {_mm256_or_si256(a.lo, b.lo), _mm256_or_si256(a.hi, b.hi)};
}
inline CodeLine differ(CodeLine a, CodeLine b) {
  return {_mm256_xor_si256(a.lo, b.lo), _mm256_xor_si256(a.hi, b.hi)};
}
inline CodeLine differ_bits(CodeLine a, unsigned bits) {
  const __m256i mask = _mm256_set1_epi32(static_cast<int>(bits));
  return {_mm256_xor_si256(a.lo, mask), _mm256_xor_si256(a.hi, mask)};
}
inline CodeLine shift_right(CodeLine a, unsigned n) {
  const int count = static_cast<int>(n);
  return {_mm256_srli_epi32(a.lo, count), _mm256_srli_epi32(a.hi, count)};
}
inline CodeLine shift_left(CodeLine a, unsigned n) {
  const int count = static_cast<int>(n);
  return {_mm256_slli_epi32(a.lo, count), _mm256_slli_epi32(a.hi, count)};
}
// Keeps the compiler from loading the line again for every use: load ports are scarce.
inline CodeLine in_registers(CodeLine a) {
  asm("" : "+x"(a.lo), "+x"(a.hi));
  return a;
}
inline Vec to_floats(CodeLine a) { return {_mm256_cvtepi32_ps(a.lo), _mm256_cvtepi32_ps(a.hi)}; }

}  // namespace
}  // namespace sluice::kernels
