// Thirty-two codes of a row, a byte each, in a register of AVX2, which AVX-512 uses for them, too. See
// code_bytes-inl.h.
#pragma once

#include <cstddef>
#include <cstdint>

namespace sluice::kernels {
namespace {

struct CodeBytes {
  __m256i v;
};

// What the sixteen bits at a time that the CPU shifts bring in from the neighbour, callers mask.
[[gnu::always_inline]] inline CodeBytes shift_right(CodeBytes a, unsigned n) {
  return {_mm256_srli_epi16(a.v, static_cast<int>(n))};
}
[[gnu::always_inline]] inline CodeBytes shift_left(CodeBytes a, unsigned n) {
  return {_mm256_slli_epi16(a.v, static_cast<int>(n))};
}
[[gnu::always_inline]] inline CodeBytes keep_bits(CodeBytes a, unsigned bits) {
  return {_mm256_and_si256(a.v, _mm256_set1_epi8(static_cast<char>(bits)))};
}
[[gnu::always_inline]] inline CodeBytes either(CodeBytes a, CodeBytes b) {
  return {_mm256_or_si256(a.v, b.v)};
}
[[gnu::always_inline]] inline CodeBytes minus(CodeBytes a, int n) {
  return {_mm256_sub_epi8(a.v, _mm256_set1_epi8(static_cast<char>(n)))};
}
// A byte of ones for each bit that is set; `places`: the byte of the word, `bits`: the bit, for each code.
[[gnu::always_inline]] inline CodeBytes spread(std::uint32_t word, __m256i places, __m256i bits) {
  const __m256i all = _mm256_shuffle_epi8(_mm256_set1_epi32(static_cast<int>(word)), places);
  return {_mm256_cmpeq_epi8(_mm256_and_si256(all, bits), bits)};
}

[[gnu::always_inline]] inline float half_at(const std::byte* p) {
  std::uint16_t word;
  __builtin_memcpy(&word, p, sizeof(word));
  return _mm_cvtss_f32(_mm_cvtph_ps(_mm_cvtsi32_si128(word)));
}

}  // namespace
}  // namespace sluice::kernels
