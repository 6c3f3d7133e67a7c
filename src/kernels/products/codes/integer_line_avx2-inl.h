// Sums of products of codes on AVX2. See integer-inl.h.
//
// VPMADDUBSW adds two products in 16 bits, and would saturate with codes of 8 bits. With codes of 4 bits the
// eight quads of a group stay below 2^15 together (8·2·15·127 = 30480): so wider codes are multiplied in two
// planes of 4 bits, and sums are widened once a group.
#pragma once

#include "kernels/lanes/code_line_avx2-inl.h"

namespace sluice::kernels {
namespace {

inline constexpr unsigned kMostCode = 15;
// Sums: 10 and 12 of the 16 registers. 4 and 2 tokens: 0.87 and 0.83 of the speed (Zen 3, m = 128).
inline constexpr int kIntegerTokens[] = {5, 3};

inline CodeLine no_sums() { return {_mm256_setzero_si256(), _mm256_setzero_si256()}; }
inline CodeLine four_codes(const std::byte* p) {
  int word;
  __builtin_memcpy(&word, p, sizeof(word));
  const __m256i all = _mm256_set1_epi32(word);
  return {all, all};
}
// Keeps the sum in registers: GCC adds whole numbers in an order of its own, for which it would keep all
// products of a group (in memory: half the speed).
inline CodeLine add_products(CodeLine sums, CodeLine codes, CodeLine x) {
  return in_registers({_mm256_add_epi16(sums.lo, _mm256_maddubs_epi16(codes.lo, x.lo)),
                       _mm256_add_epi16(sums.hi, _mm256_maddubs_epi16(codes.hi, x.hi))});
}
inline CodeLine whole_sums(CodeLine sums, unsigned shift) {
  const __m256i factor = _mm256_set1_epi16(static_cast<short>(1 << shift));
  return {_mm256_madd_epi16(sums.lo, factor), _mm256_madd_epi16(sums.hi, factor)};
}
inline CodeLine add_lines(CodeLine a, CodeLine b) {
  return {_mm256_add_epi32(a.lo, b.lo), _mm256_add_epi32(a.hi, b.hi)};
}

}  // namespace
}  // namespace sluice::kernels
