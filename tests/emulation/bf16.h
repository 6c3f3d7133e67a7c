// AVX512-BF16. All its instructions treat subnormal numbers as zeros, return zeros for them, round to nearest
// even, and ignore MXCSR (Intel SDM, VDPBF16PS and VCVTNEPS2BF16).
#pragma once

#include <cmath>

#include "emulation/lanes.h"

namespace sluice::emulation {
namespace {

inline float of_bits(std::uint32_t bits) {
  float number;
  __builtin_memcpy(&number, &bits, sizeof(number));
  return number;
}
inline std::uint32_t bits_of(float number) {
  std::uint32_t bits;
  __builtin_memcpy(&bits, &number, sizeof(bits));
  return bits;
}
inline float of_bf16(std::uint32_t word) { return of_bits(word << 16); }

// Replaces a subnormal number by a zero of its sign.
inline float flushed(float x) {
  const std::uint32_t bits = bits_of(x);
  return of_bits((bits & 0x7f800000u) == 0 ? bits & 0x80000000u : bits);
}

// a·b + c, rounded once; a zero if the result is less than 2^-126 when rounded to 24 bits with unlimited
// exponents (underflow is detected after rounding, Intel SDM vol. 1, 4.9.1.5). None of the operands is
// subnormal.
inline float flushed_fma(float a, float b, float c) {
  const float sum = std::fma(a, b, c);
  if (std::fabs(sum) != 0x1p-126f) return flushed(sum);
  // Repeats the operation 2^30 times as large, where no exponent is at its limit.
  (std::fabs(a) < std::fabs(b) ? a : b) *= 0x1p30f;
  return std::fabs(std::fma(a, b, c * 0x1p30f)) < 0x1p-96f ? std::copysign(0.0f, sum) : sum;
}
// Helpers over 16 lanes, as loops without branches, which compilers make fast.
struct Floats {
  float at[16];
};
inline Floats flushed_fma(const Floats& a, const Floats& b, const Floats& c) {
  Floats sum;
  int least = 0;
  for (int i = 0; i < 16; ++i) sum.at[i] = std::fma(a.at[i], b.at[i], c.at[i]);
  for (int i = 0; i < 16; ++i) least |= (bits_of(sum.at[i]) & 0x7fffffffu) == 0x00800000u;
  if (least != 0) {
    for (int i = 0; i < 16; ++i) sum.at[i] = flushed_fma(a.at[i], b.at[i], c.at[i]);
  } else {
    for (int i = 0; i < 16; ++i) sum.at[i] = flushed(sum.at[i]);
  }
  return sum;
}
inline Floats flushed(const Floats& x) {
  Floats y;
  for (int i = 0; i < 16; ++i) y.at[i] = flushed(x.at[i]);
  return y;
}

// The even and the odd words of 16 dwords.
struct Pairs {
  std::uint32_t at[16];
};
inline Floats even_words(const Pairs& pairs) {
  Floats x;
  for (int i = 0; i < 16; ++i) x.at[i] = flushed(of_bits(pairs.at[i] << 16));
  return x;
}
inline Floats odd_words(const Pairs& pairs) {
  Floats x;
  for (int i = 0; i < 16; ++i) x.at[i] = flushed(of_bits(pairs.at[i] & 0xffff0000u));
  return x;
}

// Adds to each lane first the product of the odd words of a pair, then the product of the even words.
inline __m512 _mm512_dpbf16_ps(__m512 sums, __m512bh a, __m512bh b) {
  Floats sum;
  Pairs x, y;
  __builtin_memcpy(&sum, &sums, sizeof(sum));
  __builtin_memcpy(&x, &a, sizeof(x));
  __builtin_memcpy(&y, &b, sizeof(y));
  sum = flushed_fma(odd_words(x), odd_words(y), flushed(sum));
  sum = flushed_fma(even_words(x), even_words(y), sum);
  __builtin_memcpy(&sums, &sum, sizeof(sum));
  return sums;
}

// Infinities stay infinite; NaNs become quiet.
inline std::uint16_t to_bf16(float number) {
  const std::uint32_t bits = bits_of(number);
  if (std::isnan(number)) return static_cast<std::uint16_t>(bits >> 16 | 0x40);
  if (std::fabs(number) < 0x1p-126f) return static_cast<std::uint16_t>(bits >> 16 & 0x8000);
  return static_cast<std::uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}
inline __m256bh _mm512_cvtneps_pbh(__m512 a) {
  return converted<__m256bh, float, std::uint16_t>(a, [](float x) { return to_bf16(x); });
}
// First the words of b, then those of a.
inline __m512bh _mm512_cvtne2ps_pbh(__m512 a, __m512 b) {
  const auto x = lanes<float>(a), y = lanes<float>(b);
  return made<__m512bh, std::uint16_t>([&](std::size_t i) { return to_bf16(i < 16 ? y[i] : x[i - 16]); });
}

}  // namespace
}  // namespace sluice::emulation
