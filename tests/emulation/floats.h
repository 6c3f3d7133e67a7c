// fp32 arithmetic (round to nearest, ties to even) and conversions.
#pragma once

#include <cmath>

#include "emulation/lanes.h"
#include "emulation/shuffles.h"

namespace sluice::emulation {
namespace {

#define SLUICE_BINARY(name, expression)                                    \
  inline __m512 _mm512_##name(__m512 a, __m512 b) {                        \
    return each<float>(a, b, [](float x, float y) { return expression; }); \
  }
SLUICE_BINARY(add_ps, x + y)
SLUICE_BINARY(sub_ps, x - y)
SLUICE_BINARY(mul_ps, x* y)
SLUICE_BINARY(div_ps, x / y)
// Returns the second operand if one is a NaN or both are zeros.
SLUICE_BINARY(max_ps, x > y ? x : y)
SLUICE_BINARY(min_ps, x < y ? x : y)
#undef SLUICE_BINARY
inline __m512 _mm512_mask_add_ps(__m512 src, __mmask16 k, __m512 a, __m512 b) {
  return chosen<float>(k, _mm512_add_ps(a, b), src);
}
inline __m512 _mm512_maskz_mul_ps(__mmask16 k, __m512 a, __m512 b) {
  return kept<float>(k, _mm512_mul_ps(a, b));
}

inline __m512 _mm512_fmadd_ps(__m512 a, __m512 b, __m512 c) {
  return each<float>(a, b, c, [](float x, float y, float z) { return std::fma(x, y, z); });
}
inline __m512 _mm512_fnmadd_ps(__m512 a, __m512 b, __m512 c) {
  return each<float>(a, b, c, [](float x, float y, float z) { return std::fma(-x, y, z); });
}
inline __m512 _mm512_fmsub_ps(__m512 a, __m512 b, __m512 c) {
  return each<float>(a, b, c, [](float x, float y, float z) { return std::fma(x, y, -z); });
}
inline __m512 _mm512_abs_ps(__m512 a) {
  return each<std::uint32_t>(a, [](std::uint32_t x) { return x & 0x7fffffffu; });
}
inline __m512 _mm512_sqrt_ps(__m512 a) {
  return each<float>(a, [](float x) { return std::sqrt(x); });
}
// Rounds only to nearest, ties to even (_MM_FROUND_TO_NEAREST_INT, with or without _MM_FROUND_NO_EXC).
inline __m512 _mm512_roundscale_ps(__m512 a, int control) {
  if ((control & ~_MM_FROUND_NO_EXC) != 0) __builtin_trap();
  return each<float>(a, [](float x) { return std::nearbyint(x); });
}

// Adds pairs that are 8, 4, 2 and 1 lanes apart, as GCC and Clang do.
inline float _mm512_reduce_add_ps(__m512 a) {
  auto x = lanes<float>(a);
  for (std::size_t apart = 8; apart > 0; apart /= 2) {
    for (std::size_t i = 0; i < apart; ++i) x[i] += x[i + apart];
  }
  return x[0];
}

inline __mmask16 _mm512_cmp_ps_mask(__m512 a, __m512 b, int predicate) {
  return static_cast<__mmask16>(mask_of<float>(a, b, [predicate](float x, float y) {
    const bool unordered = std::isnan(x) || std::isnan(y);
    switch (predicate) {
      case _CMP_EQ_OQ:
        return x == y;
      case _CMP_NEQ_UQ:
        return x != y;
      case _CMP_LT_OQ:
      case _CMP_LT_OS:
        return x < y;
      case _CMP_LE_OQ:
      case _CMP_LE_OS:
        return x <= y;
      case _CMP_GT_OQ:
      case _CMP_GT_OS:
        return x > y;
      case _CMP_GE_OQ:
      case _CMP_GE_OS:
        return x >= y;
      case _CMP_UNORD_Q:
        return unordered;
      case _CMP_ORD_Q:
        return !unordered;
      default:
        __builtin_trap();  // not emulated
    }
  }));
}

inline __m512i _mm512_cvtepu8_epi16(__m256i a) {
  return converted<__m512i, std::uint8_t, std::uint16_t>(a, [](auto x) { return x; });
}
inline __m512i _mm512_cvtepi8_epi16(__m256i a) {
  return converted<__m512i, std::int8_t, std::int16_t>(a, [](auto x) { return x; });
}
// Converts the first 16 bytes.
inline __m512i _mm512_cvtepu8_epi32(__m128i a) {
  return converted<__m512i, std::uint8_t, std::uint32_t>(a, [](auto x) { return x; });
}
inline __m512i _mm512_cvtepi8_epi32(__m128i a) {
  return converted<__m512i, std::int8_t, std::int32_t>(a, [](auto x) { return x; });
}
inline __m512i _mm512_cvtepu16_epi32(__m256i a) {
  return converted<__m512i, std::uint16_t, std::uint32_t>(a, [](auto x) { return x; });
}
inline __m512i _mm512_cvtepi16_epi32(__m256i a) {
  return converted<__m512i, std::int16_t, std::int32_t>(a, [](auto x) { return x; });
}
// Keeps the low bits.
inline __m256i _mm512_cvtepi16_epi8(__m512i a) {
  return converted<__m256i, std::uint16_t, std::uint8_t>(a, [](auto x) { return x; });
}
inline __m256i _mm512_maskz_cvtepi16_epi8(__mmask32 k, __m512i a) {
  return kept<std::uint8_t>(k, _mm512_cvtepi16_epi8(a));
}
inline __m256i _mm512_cvtepi32_epi16(__m512i a) {
  return converted<__m256i, std::uint32_t, std::uint16_t>(a, [](auto x) { return x; });
}
inline __m256i _mm512_maskz_cvtepi32_epi16(__mmask16 k, __m512i a) {
  return kept<std::uint16_t>(k, _mm512_cvtepi32_epi16(a));
}
inline __m128i _mm512_cvtepi32_epi8(__m512i a) {
  return converted<__m128i, std::uint32_t, std::uint8_t>(a, [](auto x) { return x; });
}
inline __m128i _mm512_maskz_cvtepi32_epi8(__mmask16 k, __m512i a) {
  return kept<std::uint8_t>(k, _mm512_cvtepi32_epi8(a));
}
// Saturates.
inline __m128i _mm512_cvtsepi32_epi8(__m512i a) {
  return converted<__m128i, std::int32_t, std::int8_t>(a, [](auto x) { return saturated<std::int8_t>(x); });
}
inline __m128i _mm512_cvtusepi32_epi8(__m512i a) {
  return converted<__m128i, std::uint32_t, std::uint8_t>(a,
                                                         [](auto x) { return saturated<std::uint8_t>(x); });
}

inline __m512 _mm512_cvtepi32_ps(__m512i a) {
  return converted<__m512, std::int32_t, float>(a, [](auto x) { return static_cast<float>(x); });
}
// Rounds to nearest, ties to even; numbers outside 32 bits, and NaNs, become the smallest number.
template <class F>
inline __m512i to_integers(const __m512& a, const F& rounded) {
  return converted<__m512i, float, std::int32_t>(a, [&](float x) {
    const float r = rounded(x);
    return r >= -0x1p31f && r < 0x1p31f ? static_cast<std::int32_t>(r) : INT32_MIN;
  });
}
inline __m512i _mm512_cvtps_epi32(__m512 a) {
  return to_integers(a, [](float x) { return std::nearbyint(x); });
}
inline __m512i _mm512_cvttps_epi32(__m512 a) {
  return to_integers(a, [](float x) { return std::trunc(x); });
}

// Converts binary16; a signalling NaN becomes quiet.
inline float of_half(std::uint16_t half) {
  const unsigned exponent = half >> 10 & 31, fraction = half & 1023;
  const std::uint32_t sign = std::uint32_t{half} >> 15 << 31;
  std::uint32_t bits;
  if (exponent == 31) {
    bits = 0x7f800000u | fraction << 13 | (fraction != 0 ? 0x400000u : 0);
  } else if (exponent == 0) {
    const float subnormal = static_cast<float>(fraction) * 0x1p-24f;
    __builtin_memcpy(&bits, &subnormal, sizeof(bits));
  } else {
    bits = (exponent + 112) << 23 | fraction << 13;
  }
  bits |= sign;
  float number;
  __builtin_memcpy(&number, &bits, sizeof(number));
  return number;
}
inline __m512 _mm512_cvtph_ps(__m256i a) {
  return converted<__m512, std::uint16_t, float>(a, [](std::uint16_t x) { return of_half(x); });
}

}  // namespace
}  // namespace sluice::emulation
