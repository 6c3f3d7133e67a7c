// Sixteen fp32 lanes on AVX-512 (F, BW, DQ, VL). See vec-inl.h for what every instruction set must offer.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/machine/avx512_intrinsics.h"

namespace sluice::kernels {
namespace {

struct Vec {
  __m512 v;
};

// 8 rows at once when memory is the limit (m ≤ 3): one core reads twice as fast from 8 streams as from one.
// Otherwise 4 rows × 6 tokens: 24 accumulators, 4 weights, 1 activation of the 32 registers; 8 conversions in
// 56 ops. 0.67 of the FMA peak with GCC 12; 4 × 5 had 0.55, 3 × 8 0.54, 8 × 3 0.55, 6 × 4 0.48.
inline constexpr int kFewTokens = 3, kRowsForFew = 8;
inline constexpr int kTokens = 6, kRows = 4;
inline constexpr int kSumVecs = 4,
                     kSumVecsAlone = 8;  // accumulators of 16 columns in weighted sums: ×4 tokens, ×1

inline Vec zero() { return {_mm512_setzero_ps()}; }
inline Vec set1(float x) { return {_mm512_set1_ps(x)}; }
inline Vec load(const float* p) { return {_mm512_loadu_ps(p)}; }
inline void store(float* p, Vec a) { _mm512_storeu_ps(p, a.v); }
inline Vec add(Vec a, Vec b) { return {_mm512_add_ps(a.v, b.v)}; }
inline Vec sub(Vec a, Vec b) { return {_mm512_sub_ps(a.v, b.v)}; }
inline Vec mul(Vec a, Vec b) { return {_mm512_mul_ps(a.v, b.v)}; }
inline Vec div(Vec a, Vec b) { return {_mm512_div_ps(a.v, b.v)}; }
inline Vec max(Vec a, Vec b) { return {_mm512_max_ps(a.v, b.v)}; }
inline Vec min(Vec a, Vec b) { return {_mm512_min_ps(a.v, b.v)}; }
inline Vec fma(Vec a, Vec b, Vec c) { return {_mm512_fmadd_ps(a.v, b.v, c.v)}; }

inline Vec mul_pow2(Vec p, Vec t, float magic) {
  const __m512i n = _mm512_sub_epi32(_mm512_castps_si512(t.v), _mm512_castps_si512(_mm512_set1_ps(magic)));
  const __m512i half = _mm512_srai_epi32(n, 1);
  const __m512i bias = _mm512_set1_epi32(127);
  const __m512i first = _mm512_slli_epi32(_mm512_add_epi32(half, bias), 23);
  const __m512i second = _mm512_slli_epi32(_mm512_add_epi32(_mm512_sub_epi32(n, half), bias), 23);
  return {_mm512_mul_ps(_mm512_mul_ps(p.v, _mm512_castsi512_ps(first)), _mm512_castsi512_ps(second))};
}

inline float sum_tree(Vec a) {
  const __m256 by8 = _mm256_add_ps(_mm512_castps512_ps256(a.v), _mm512_extractf32x8_ps(a.v, 1));
  const __m128 by4 = _mm_add_ps(_mm256_castps256_ps128(by8), _mm256_extractf128_ps(by8, 1));
  const __m128 by2 = _mm_add_ps(by4, _mm_movehl_ps(by4, by4));
  return _mm_cvtss_f32(_mm_add_ss(by2, _mm_movehdup_ps(by2)));
}

inline float max_tree(Vec a) {
  const __m256 by8 = _mm256_max_ps(_mm512_castps512_ps256(a.v), _mm512_extractf32x8_ps(a.v, 1));
  const __m128 by4 = _mm_max_ps(_mm256_castps256_ps128(by8), _mm256_extractf128_ps(by8, 1));
  const __m128 by2 = _mm_max_ps(by4, _mm_movehl_ps(by4, by4));
  return _mm_cvtss_f32(_mm_max_ss(by2, _mm_movehdup_ps(by2)));
}

// Sums four trees side by side: a quarter of the shuffles of four sum_tree calls.
inline void sum_tree4(Vec a, Vec b, Vec c, Vec d, float* out) {
  const __m512 ab = _mm512_add_ps(_mm512_shuffle_f32x4(a.v, b.v, 0x44), _mm512_shuffle_f32x4(a.v, b.v, 0xee));
  const __m512 cd = _mm512_add_ps(_mm512_shuffle_f32x4(c.v, d.v, 0x44), _mm512_shuffle_f32x4(c.v, d.v, 0xee));
  // ab = [a0 a1 b0 b1] in quarters of 4 lanes; the next step adds quarter 1 to quarter 0 of each.
  const __m512 by4 = _mm512_add_ps(_mm512_shuffle_f32x4(ab, cd, 0x88), _mm512_shuffle_f32x4(ab, cd, 0xdd));
  const __m512 by2 = _mm512_add_ps(by4, _mm512_permute_ps(by4, 0xee));
  const __m512 by1 = _mm512_add_ps(by2, _mm512_permute_ps(by2, 0x55));
  const __m512i firsts = _mm512_setr_epi32(0, 4, 8, 12, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0);
  _mm_storeu_ps(out, _mm512_castps512_ps128(_mm512_permutexvar_ps(firsts, by1)));
}

inline Vec even_lanes(Vec a, Vec b) {
  const __m512i index = _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
  return {_mm512_permutex2var_ps(a.v, index, b.v)};
}
inline Vec odd_lanes(Vec a, Vec b) {
  const __m512i index = _mm512_setr_epi32(1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31);
  return {_mm512_permutex2var_ps(a.v, index, b.v)};
}

struct Bf16 {
  static constexpr std::size_t kBytes = 2;
  static Vec even(const std::byte* p) {
    return {_mm512_castsi512_ps(_mm512_slli_epi32(_mm512_loadu_si512(p), 16))};
  }
  static Vec odd(const std::byte* p) {
    const __m512i high = _mm512_set1_epi32(static_cast<int>(0xffff0000u));
    return {_mm512_castsi512_ps(_mm512_and_si512(_mm512_loadu_si512(p), high))};
  }
  static Vec in_order(const std::byte* p) {
    const __m256i words = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
    return {_mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(words), 16))};
  }
};

struct F32 {
  static constexpr std::size_t kBytes = 4;
  static Vec in_order(const std::byte* p) { return {_mm512_loadu_ps(p)}; }
  static Vec even(const std::byte* p) { return even_lanes(in_order(p), in_order(p + 64)); }
  static Vec odd(const std::byte* p) { return odd_lanes(in_order(p), in_order(p + 64)); }
};

struct I8 {
  static constexpr std::size_t kBytes = 1;
  static Vec in_order(const std::byte* p) {
    const __m128i codes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
    return {_mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(codes))};
  }
  static Vec even(const std::byte* p) { return even_lanes(in_order(p), in_order(p + 16)); }
  static Vec odd(const std::byte* p) { return odd_lanes(in_order(p), in_order(p + 16)); }
};

struct F16 {
  static constexpr std::size_t kBytes = 2;
  static Vec in_order(const std::byte* p) {
    return {_mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)))};
  }
  static Vec even(const std::byte* p) { return even_lanes(in_order(p), in_order(p + 32)); }
  static Vec odd(const std::byte* p) { return odd_lanes(in_order(p), in_order(p + 32)); }
};

}  // namespace
}  // namespace sluice::kernels
