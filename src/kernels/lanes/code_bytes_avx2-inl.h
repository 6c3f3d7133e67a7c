// Thirty-two codes of a row on AVX2. See code_bytes-inl.h. They lie woven: columns 0…7 and 16…23 in the lower
// half of the register, 8…15 and 24…31 in the upper, so that unpacking within halves leaves them in order.
#pragma once

#include "kernels/lanes/vec_avx2-inl.h"

// Must follow the include of the lanes.
#include "kernels/lanes/code_bytes-inl.h"
#include "kernels/lanes/code_bytes_ymm-inl.h"

namespace sluice::kernels {
namespace {

// One row at a time for one token: 2 and 3 rows at once are up to a tenth faster out of the L1 cache, but no
// faster out of memory, which one row passes in order. Several tokens: with numbers that lie in the cache 3
// rows by 2 tokens have 1.3 times the speed of 1 × 6 and 2 × 3.
inline constexpr int kBlockRows = 1;
inline constexpr int kBlockTileRows = 3, kBlockTileTokens = 2;

[[gnu::always_inline]] inline CodeBytes load_codes(const std::byte* p) {
  return {_mm256_permute4x64_epi64(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)), 0xd8)};
}
[[gnu::always_inline]] inline __m128i sixteen_bytes(const std::byte* p) {
  return _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
}
[[gnu::always_inline]] inline CodeBytes load_nibbles(const std::byte* p) {
  const __m256i twice = _mm256_permute4x64_epi64(_mm256_castsi128_si256(sixteen_bytes(p)), 0x50);
  return keep_bits(CodeBytes{_mm256_srlv_epi64(twice, _mm256_setr_epi64x(0, 4, 0, 4))}, 15);
}
[[gnu::always_inline]] inline CodeBytes load_nibble_pairs(const std::byte* p) {
  const __m256i places = _mm256_setr_epi8(0, -1, 1, -1, 2, -1, 3, -1, 8, -1, 9, -1, 10, -1, 11, -1,  //
                                          4, -1, 5, -1, 6, -1, 7, -1, 12, -1, 13, -1, 14, -1, 15, -1);
  const __m256i words = _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(sixteen_bytes(p)), places);
  return keep_bits(either(CodeBytes{words}, shift_left(CodeBytes{words}, 4)), 15);
}
[[gnu::always_inline]] inline CodeBytes spread_bits(std::uint32_t word) {
  const __m256i places = _mm256_setr_epi64x(0, 0x0202020202020202, 0x0101010101010101, 0x0303030303030303);
  return spread(word, places, _mm256_set1_epi64x(static_cast<long long>(0x8040201008040201)));
}

[[gnu::always_inline]] inline Columns numbers_times_2_24(CodeBytes a) {
  const __m256i first = _mm256_unpacklo_epi8(_mm256_setzero_si256(), a.v),
                second = _mm256_unpackhi_epi8(_mm256_setzero_si256(), a.v),
                top = _mm256_set1_epi32(static_cast<int>(0xff000000u));
  return {
      {_mm256_cvtepi32_ps(_mm256_slli_epi32(first, 16)), _mm256_cvtepi32_ps(_mm256_slli_epi32(second, 16))},
      {_mm256_cvtepi32_ps(_mm256_and_si256(first, top)), _mm256_cvtepi32_ps(_mm256_and_si256(second, top))}};
}

[[gnu::always_inline]] inline Columns numbers_of(CodeBytes a, const NibbleTable& table) {
  const auto bytes = [](const std::uint8_t* p) {
    return _mm256_broadcastsi128_si256(_mm_load_si128(reinterpret_cast<const __m128i*>(p)));
  };
  const __m256i low = _mm256_shuffle_epi8(bytes(table.low), a.v),
                high = _mm256_shuffle_epi8(bytes(table.high), a.v);
  const __m256i first = _mm256_unpacklo_epi8(low, high), second = _mm256_unpackhi_epi8(low, high),
                top = _mm256_set1_epi32(static_cast<int>(0xffff0000u));
  return {
      {_mm256_castsi256_ps(_mm256_slli_epi32(first, 16)), _mm256_castsi256_ps(_mm256_slli_epi32(second, 16))},
      {_mm256_castsi256_ps(_mm256_and_si256(first, top)),
       _mm256_castsi256_ps(_mm256_and_si256(second, top))}};
}

[[gnu::always_inline]] inline Vec two_halves(float first, float second) {
  return {_mm256_set1_ps(first), _mm256_set1_ps(second)};
}
[[gnu::always_inline]] inline Vec of_bytes(std::uint64_t low, std::uint64_t high) {
  const auto eight = [](std::uint64_t bytes) {
    return _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_cvtsi64_si128(static_cast<long long>(bytes))));
  };
  return {eight(low), eight(high)};
}

}  // namespace
}  // namespace sluice::kernels
