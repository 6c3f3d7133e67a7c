// Thirty-two codes of a row in a register of AVX2, in order. See code_bytes-inl.h.
#pragma once

#include "kernels/lanes/code_bytes_ymm-inl.h"

namespace sluice::kernels {
namespace {

[[gnu::always_inline]] inline CodeBytes load_codes(const std::byte* p) {
  return {_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p))};
}
[[gnu::always_inline]] inline __m128i sixteen_bytes(const std::byte* p) {
  return _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
}
[[gnu::always_inline]] inline CodeBytes load_nibbles(const std::byte* p) {
  const __m128i bytes = sixteen_bytes(p);
  return keep_bits(
      CodeBytes{_mm256_inserti128_si256(_mm256_castsi128_si256(bytes), _mm_srli_epi16(bytes, 4), 1)}, 15);
}
[[gnu::always_inline]] inline CodeBytes load_nibble_pairs(const std::byte* p) {
  const CodeBytes words{_mm256_cvtepu8_epi16(sixteen_bytes(p))};
  return keep_bits(either(words, shift_left(words, 4)), 15);
}
[[gnu::always_inline]] inline CodeBytes spread_bits(std::uint32_t word) {
  const __m256i places = _mm256_setr_epi64x(0, 0x0101010101010101, 0x0202020202020202, 0x0303030303030303);
  return spread(word, places, _mm256_set1_epi64x(static_cast<long long>(0x8040201008040201)));
}

}  // namespace
}  // namespace sluice::kernels
