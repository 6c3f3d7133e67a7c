// Sixteen fp32 lanes on AVX2 + FMA + F16C: two registers of eight. See vec-inl.h for what every instruction
// set must offer.
#pragma once

#include <immintrin.h>

#include <cstddef>
#include <cstdint>

namespace sluice::kernels {
namespace {

struct Vec {
  __m256 lo, hi;  // lanes 0…7, 8…15
};

// Accumulators: 12 of the 16 registers. 6 rows × 1 token when memory is the limit. Otherwise 1 row × 6
// tokens: 0.67 of the FMA peak with GCC 12; 2 × 3 had 0.57, 2 × 2 0.54, 3 × 2 0.47 (activations come as
// memory operands, weights do not).
inline constexpr int kFewTokens = 1, kRowsForFew = 6;
inline constexpr int kTokens = 6, kRows = 1;
inline constexpr int kSumVecs = 1, kSumVecsAlone = 4;

inline Vec zero() { return {_mm256_setzero_ps(), _mm256_setzero_ps()}; }
inline Vec set1(float x) { return {_mm256_set1_ps(x), _mm256_set1_ps(x)}; }
inline Vec load(const float* p) { return {_mm256_loadu_ps(p), _mm256_loadu_ps(p + 8)}; }
inline void store(float* p, Vec a) {
  _mm256_storeu_ps(p, a.lo);
  _mm256_storeu_ps(p + 8, a.hi);
}
inline Vec add(Vec a, Vec b) { return {_mm256_add_ps(a.lo, b.lo), _mm256_add_ps(a.hi, b.hi)}; }
inline Vec sub(Vec a, Vec b) { return {_mm256_sub_ps(a.lo, b.lo), _mm256_sub_ps(a.hi, b.hi)}; }
inline Vec mul(Vec a, Vec b) { return {_mm256_mul_ps(a.lo, b.lo), _mm256_mul_ps(a.hi, b.hi)}; }
inline Vec div(Vec a, Vec b) { return {_mm256_div_ps(a.lo, b.lo), _mm256_div_ps(a.hi, b.hi)}; }
inline Vec max(Vec a, Vec b) { return {_mm256_max_ps(a.lo, b.lo), _mm256_max_ps(a.hi, b.hi)}; }
inline Vec min(Vec a, Vec b) { return {_mm256_min_ps(a.lo, b.lo), _mm256_min_ps(a.hi, b.hi)}; }
inline Vec fma(Vec a, Vec b, Vec c) {
  return {_mm256_fmadd_ps(a.lo, b.lo, c.lo), _mm256_fmadd_ps(a.hi, b.hi, c.hi)};
}

inline __m256 mul_pow2(__m256 p, __m256 t, float magic) {
  const __m256i n = _mm256_sub_epi32(_mm256_castps_si256(t), _mm256_castps_si256(_mm256_set1_ps(magic)));
  const __m256i half = _mm256_srai_epi32(n, 1);
  const __m256i bias = _mm256_set1_epi32(127);
  const __m256i first = _mm256_slli_epi32(_mm256_add_epi32(half, bias), 23);
  const __m256i second = _mm256_slli_epi32(_mm256_add_epi32(_mm256_sub_epi32(n, half), bias), 23);
  return _mm256_mul_ps(_mm256_mul_ps(p, _mm256_castsi256_ps(first)), _mm256_castsi256_ps(second));
}
inline Vec mul_pow2(Vec p, Vec t, float magic) {
  return {mul_pow2(p.lo, t.lo, magic), mul_pow2(p.hi, t.hi, magic)};
}

inline float sum_tree(Vec a) {
  const __m256 by8 = _mm256_add_ps(a.lo, a.hi);
  const __m128 by4 = _mm_add_ps(_mm256_castps256_ps128(by8), _mm256_extractf128_ps(by8, 1));
  const __m128 by2 = _mm_add_ps(by4, _mm_movehl_ps(by4, by4));
  return _mm_cvtss_f32(_mm_add_ss(by2, _mm_movehdup_ps(by2)));
}

inline float max_tree(Vec a) {
  const __m256 by8 = _mm256_max_ps(a.lo, a.hi);
  const __m128 by4 = _mm_max_ps(_mm256_castps256_ps128(by8), _mm256_extractf128_ps(by8, 1));
  const __m128 by2 = _mm_max_ps(by4, _mm_movehl_ps(by4, by4));
  return _mm_cvtss_f32(_mm_max_ss(by2, _mm_movehdup_ps(by2)));
}

inline void sum_tree4(Vec a, Vec b, Vec c, Vec d, float* out) {
  out[0] = sum_tree(a);
  out[1] = sum_tree(b);
  out[2] = sum_tree(c);
  out[3] = sum_tree(d);
}

// The even (odd) numbers of 16, in order: shuffles within 128-bit halves, then puts the 64-bit quarters in
// order.
inline __m256 even_of(__m256 a, __m256 b) {
  return _mm256_castpd_ps(_mm256_permute4x64_pd(_mm256_castps_pd(_mm256_shuffle_ps(a, b, 0x88)), 0xd8));
}
inline __m256 odd_of(__m256 a, __m256 b) {
  return _mm256_castpd_ps(_mm256_permute4x64_pd(_mm256_castps_pd(_mm256_shuffle_ps(a, b, 0xdd)), 0xd8));
}
inline Vec even_lanes(Vec a, Vec b) { return {even_of(a.lo, a.hi), even_of(b.lo, b.hi)}; }
inline Vec odd_lanes(Vec a, Vec b) { return {odd_of(a.lo, a.hi), odd_of(b.lo, b.hi)}; }

struct Bf16 {
  static constexpr std::size_t kBytes = 2;
  static __m256i words(const std::byte* p) { return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)); }
  static Vec even(const std::byte* p) {
    return {_mm256_castsi256_ps(_mm256_slli_epi32(words(p), 16)),
            _mm256_castsi256_ps(_mm256_slli_epi32(words(p + 32), 16))};
  }
  static Vec odd(const std::byte* p) {
    const __m256i high = _mm256_set1_epi32(static_cast<int>(0xffff0000u));
    return {_mm256_castsi256_ps(_mm256_and_si256(words(p), high)),
            _mm256_castsi256_ps(_mm256_and_si256(words(p + 32), high))};
  }
  static __m256 eight(const std::byte* p) {
    const __m128i words = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(words), 16));
  }
  static Vec in_order(const std::byte* p) { return {eight(p), eight(p + 16)}; }
};

struct F32 {
  static constexpr std::size_t kBytes = 4;
  static Vec in_order(const std::byte* p) { return load(reinterpret_cast<const float*>(p)); }
  static Vec even(const std::byte* p) { return even_lanes(in_order(p), in_order(p + 64)); }
  static Vec odd(const std::byte* p) { return odd_lanes(in_order(p), in_order(p + 64)); }
};

struct I8 {
  static constexpr std::size_t kBytes = 1;
  static __m256 eight(const std::byte* p) {
    const __m128i codes = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(p));
    return _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(codes));
  }
  static Vec in_order(const std::byte* p) { return {eight(p), eight(p + 8)}; }
  static Vec even(const std::byte* p) { return even_lanes(in_order(p), in_order(p + 16)); }
  static Vec odd(const std::byte* p) { return odd_lanes(in_order(p), in_order(p + 16)); }
};

struct F16 {
  static constexpr std::size_t kBytes = 2;
  static __m256 eight(const std::byte* p) {
    return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
  }
  static Vec in_order(const std::byte* p) { return {eight(p), eight(p + 16)}; }
  static Vec even(const std::byte* p) { return even_lanes(in_order(p), in_order(p + 32)); }
  static Vec odd(const std::byte* p) { return odd_lanes(in_order(p), in_order(p + 32)); }
};

}  // namespace
}  // namespace sluice::kernels
