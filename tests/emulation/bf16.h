// AVX512-BF16. All of it takes subnormal numbers for zeros, gives zeros for them, rounds to nearest even, and
// does not look at MXCSR (Intel SDM, VDPBF16PS and VCVTNEPS2BF16).
#pragma once

#include <cmath>

#include "emulation/lanes.h"

namespace sluice::emulation {
namespace {

// A zero of its sign for a subnormal number.
inline float flushed(float x) { return std::fabs(x) < 0x1p-126f ? std::copysign(0.0f, x) : x; }

// a·b + c, rounded once; a zero if that is less than 2^-126 when rounded to 24 bits as if exponents had no
// limit (underflow is detected after rounding, Intel SDM vol. 1, 4.9.1.5).
inline float flushed_fma(float a, float b, float c) {
  a = flushed(a);
  b = flushed(b);
  c = flushed(c);
  const float sum = std::fma(a, b, c);
  if (std::fabs(sum) != 0x1p-126f) return flushed(sum);
  // Again, 2^30 times as large, where no exponent is at its limit.
  (std::fabs(a) < std::fabs(b) ? a : b) *= 0x1p30f;
  return std::fabs(std::fma(a, b, c * 0x1p30f)) < 0x1p-96f ? std::copysign(0.0f, sum) : sum;
}

inline float of_bf16(std::uint16_t word) {
  const std::uint32_t bits = std::uint32_t{word} << 16;
  float number;
  __builtin_memcpy(&number, &bits, sizeof(number));
  return number;
}

// To each lane the product of the odd words of a pair, then that of the even ones.
inline __m512 _mm512_dpbf16_ps(__m512 sums, __m512bh a, __m512bh b) {
  const auto x = lanes<std::uint16_t>(a), y = lanes<std::uint16_t>(b);
  const auto sum = lanes<float>(sums);
  return made<__m512, float>([&](std::size_t i) {
    const float odd = flushed_fma(of_bf16(x[2 * i + 1]), of_bf16(y[2 * i + 1]), sum[i]);
    return flushed_fma(of_bf16(x[2 * i]), of_bf16(y[2 * i]), odd);
  });
}

// Infinities stay; NaNs become quiet.
inline std::uint16_t to_bf16(float number) {
  std::uint32_t bits;
  __builtin_memcpy(&bits, &number, sizeof(bits));
  if (std::isnan(number)) return static_cast<std::uint16_t>(bits >> 16 | 0x40);
  if (std::fabs(number) < 0x1p-126f) return static_cast<std::uint16_t>(bits >> 16 & 0x8000);
  return static_cast<std::uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}
inline __m256bh _mm512_cvtneps_pbh(__m512 a) {
  return converted<__m256bh, float, std::uint16_t>(a, [](float x) { return to_bf16(x); });
}
// The words of b, then those of a.
inline __m512bh _mm512_cvtne2ps_pbh(__m512 a, __m512 b) {
  const auto x = lanes<float>(a), y = lanes<float>(b);
  return made<__m512bh, std::uint16_t>([&](std::size_t i) { return to_bf16(i < 16 ? y[i] : x[i - 16]); });
}

}  // namespace
}  // namespace sluice::emulation
