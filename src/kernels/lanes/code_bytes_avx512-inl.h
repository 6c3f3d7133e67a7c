// Thirty-two codes of a row on AVX-512, in order. See code_bytes-inl.h.
#pragma once

#include "kernels/lanes/vec_avx512-inl.h"

// Must follow the include of the lanes.
#include "kernels/lanes/code_bytes-inl.h"
#include "kernels/lanes/code_bytes_in_order-inl.h"

namespace sluice::kernels {
namespace {

// A row has one chain of sums, whose latency four rows hide. Not measured.
inline constexpr int kBlockRows = 4;
inline constexpr int kBlockTileRows = kRows, kBlockTileTokens = kTokens;

[[gnu::always_inline]] inline Columns numbers_times_2_24(CodeBytes a) {
  const __m512i pairs = _mm512_cvtepu16_epi32(a.v), top = _mm512_set1_epi32(static_cast<int>(0xff000000u));
  return {{_mm512_cvtepi32_ps(_mm512_slli_epi32(pairs, 24))},
          {_mm512_cvtepi32_ps(_mm512_and_si512(_mm512_slli_epi32(pairs, 16), top))}};
}

[[gnu::always_inline]] inline Columns numbers_of(CodeBytes a, const NibbleTable& table) {
  const __m512i pairs = _mm512_cvtepu16_epi32(a.v);  // the CPU takes four bits of each index
  const Vec values = load(table.values);
  return {{_mm512_permutexvar_ps(pairs, values.v)},
          {_mm512_permutexvar_ps(_mm512_srli_epi32(pairs, 8), values.v)}};
}

[[gnu::always_inline]] inline Vec two_halves(float first, float second) {
  return {_mm512_mask_blend_ps(0xff00, _mm512_set1_ps(first), _mm512_set1_ps(second))};
}
[[gnu::always_inline]] inline Vec of_bytes(std::uint64_t low, std::uint64_t high) {
  const __m128i bytes = _mm_set_epi64x(static_cast<long long>(high), static_cast<long long>(low));
  return {_mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(bytes))};
}

}  // namespace
}  // namespace sluice::kernels
