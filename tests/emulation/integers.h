// Integer arithmetic, logic, shifts, comparisons and products.
#pragma once

#include "emulation/lanes.h"

namespace sluice::emulation {
namespace {

// An operation on each lane of two vectors, with its masked forms, which keep `src`, or 0, where the mask has
// no bit.
#define SLUICE_BINARY(name, T, Mask, expression)                                 \
  inline __m512i _mm512_##name(__m512i a, __m512i b) {                           \
    return each<T>(a, b, [](T x, T y) { return expression; });                   \
  }                                                                              \
  inline __m512i _mm512_mask_##name(__m512i src, Mask k, __m512i a, __m512i b) { \
    return chosen<T>(k, _mm512_##name(a, b), src);                               \
  }                                                                              \
  inline __m512i _mm512_maskz_##name(Mask k, __m512i a, __m512i b) { return kept<T>(k, _mm512_##name(a, b)); }
SLUICE_BINARY(add_epi8, std::uint8_t, __mmask64, x + y)
SLUICE_BINARY(add_epi16, std::uint16_t, __mmask32, x + y)
SLUICE_BINARY(add_epi32, std::uint32_t, __mmask16, x + y)
SLUICE_BINARY(add_epi64, std::uint64_t, __mmask8, x + y)
SLUICE_BINARY(sub_epi8, std::uint8_t, __mmask64, x - y)
SLUICE_BINARY(sub_epi16, std::uint16_t, __mmask32, x - y)
SLUICE_BINARY(sub_epi32, std::uint32_t, __mmask16, x - y)
SLUICE_BINARY(sub_epi64, std::uint64_t, __mmask8, x - y)
SLUICE_BINARY(adds_epi8, std::int8_t, __mmask64, saturated<std::int8_t>(std::int64_t{x} + y))
SLUICE_BINARY(adds_epu8, std::uint8_t, __mmask64, saturated<std::uint8_t>(std::int64_t{x} + y))
SLUICE_BINARY(adds_epi16, std::int16_t, __mmask32, saturated<std::int16_t>(std::int64_t{x} + y))
SLUICE_BINARY(subs_epi8, std::int8_t, __mmask64, saturated<std::int8_t>(std::int64_t{x} - y))
SLUICE_BINARY(subs_epu8, std::uint8_t, __mmask64, saturated<std::uint8_t>(std::int64_t{x} - y))
SLUICE_BINARY(subs_epi16, std::int16_t, __mmask32, saturated<std::int16_t>(std::int64_t{x} - y))
SLUICE_BINARY(min_epi8, std::int8_t, __mmask64, x < y ? x : y)
SLUICE_BINARY(min_epu8, std::uint8_t, __mmask64, x < y ? x : y)
SLUICE_BINARY(min_epi16, std::int16_t, __mmask32, x < y ? x : y)
SLUICE_BINARY(min_epi32, std::int32_t, __mmask16, x < y ? x : y)
SLUICE_BINARY(max_epi8, std::int8_t, __mmask64, x > y ? x : y)
SLUICE_BINARY(max_epu8, std::uint8_t, __mmask64, x > y ? x : y)
SLUICE_BINARY(max_epi16, std::int16_t, __mmask32, x > y ? x : y)
SLUICE_BINARY(max_epi32, std::int32_t, __mmask16, x > y ? x : y)
SLUICE_BINARY(mullo_epi16, std::uint16_t, __mmask32, std::uint32_t{x} * y)
SLUICE_BINARY(mulhi_epi16, std::int16_t, __mmask32, (std::int32_t{x} * y) >> 16)
SLUICE_BINARY(mulhi_epu16, std::uint16_t, __mmask32, (std::uint32_t{x} * y) >> 16)
SLUICE_BINARY(mullo_epi32, std::uint32_t, __mmask16, x* y)
SLUICE_BINARY(and_epi32, std::uint32_t, __mmask16, x& y)
SLUICE_BINARY(andnot_epi32, std::uint32_t, __mmask16, ~x& y)
SLUICE_BINARY(or_epi32, std::uint32_t, __mmask16, x | y)
SLUICE_BINARY(xor_epi32, std::uint32_t, __mmask16, x ^ y)
// Shifts by at least the bits of a lane leave 0 (for signed lanes: the sign).
SLUICE_BINARY(sllv_epi32, std::uint32_t, __mmask16, y < 32 ? x << y : 0)
SLUICE_BINARY(srlv_epi32, std::uint32_t, __mmask16, y < 32 ? x >> y : 0)
SLUICE_BINARY(srlv_epi64, std::uint64_t, __mmask8, y < 64 ? x >> y : 0)
#undef SLUICE_BINARY
inline __m512i _mm512_sllv_epi16(__m512i a, __m512i b) {
  return each<std::uint16_t>(a, b, [](std::uint16_t x, std::uint16_t y) { return y < 16 ? x << y : 0; });
}
inline __m512i _mm512_srlv_epi16(__m512i a, __m512i b) {
  return each<std::uint16_t>(a, b, [](std::uint16_t x, std::uint16_t y) { return y < 16 ? x >> y : 0; });
}

inline __m512i _mm512_and_si512(__m512i a, __m512i b) { return _mm512_and_epi32(a, b); }
inline __m512i _mm512_or_si512(__m512i a, __m512i b) { return _mm512_or_epi32(a, b); }
inline __m512i _mm512_xor_si512(__m512i a, __m512i b) { return _mm512_xor_epi32(a, b); }
inline __m512i _mm512_andnot_si512(__m512i a, __m512i b) { return _mm512_andnot_epi32(a, b); }

// Bit i of the result is the bit of `table` whose index consists of bits i of a, b and c, a the highest.
inline __m512i _mm512_ternarylogic_epi64(__m512i a, __m512i b, __m512i c, int table) {
  return each<std::uint64_t>(a, b, c, [table](std::uint64_t x, std::uint64_t y, std::uint64_t z) {
    std::uint64_t bits = 0;
    for (unsigned place = 0; place < 8; ++place) {
      if ((table >> place & 1) == 0) continue;
      bits |= ((place & 4) != 0 ? x : ~x) & ((place & 2) != 0 ? y : ~y) & ((place & 1) != 0 ? z : ~z);
    }
    return bits;
  });
}
inline __m512i _mm512_ternarylogic_epi32(__m512i a, __m512i b, __m512i c, int table) {
  return _mm512_ternarylogic_epi64(a, b, c, table);
}

#define SLUICE_SHIFT(name, T, Mask, expression)                                   \
  inline __m512i _mm512_##name(__m512i a, unsigned n) {                           \
    return each<T>(a, [n](T x) { return expression; });                           \
  }                                                                               \
  inline __m512i _mm512_mask_##name(__m512i src, Mask k, __m512i a, unsigned n) { \
    return chosen<T>(k, _mm512_##name(a, n), src);                                \
  }                                                                               \
  inline __m512i _mm512_maskz_##name(Mask k, __m512i a, unsigned n) {             \
    return kept<T>(k, _mm512_##name(a, n));                                       \
  }
SLUICE_SHIFT(slli_epi16, std::uint16_t, __mmask32, n < 16 ? x << n : 0)
SLUICE_SHIFT(srli_epi16, std::uint16_t, __mmask32, n < 16 ? x >> n : 0)
SLUICE_SHIFT(srai_epi16, std::int16_t, __mmask32, x >> (n < 16 ? n : 15))
SLUICE_SHIFT(slli_epi32, std::uint32_t, __mmask16, n < 32 ? x << n : 0)
SLUICE_SHIFT(srli_epi32, std::uint32_t, __mmask16, n < 32 ? x >> n : 0)
SLUICE_SHIFT(srai_epi32, std::int32_t, __mmask16, x >> (n < 32 ? n : 31))
SLUICE_SHIFT(slli_epi64, std::uint64_t, __mmask8, n < 64 ? x << n : 0)
SLUICE_SHIFT(srli_epi64, std::uint64_t, __mmask8, n < 64 ? x >> n : 0)
#undef SLUICE_SHIFT

inline __m512i _mm512_abs_epi8(__m512i a) {
  return each<std::int8_t>(a, [](int x) { return x < 0 ? -x : x; });
}
inline __m512i _mm512_abs_epi16(__m512i a) {
  return each<std::int16_t>(a, [](int x) { return x < 0 ? -x : x; });
}
inline __m512i _mm512_abs_epi32(__m512i a) {
  return each<std::uint32_t>(a, [](std::uint32_t x) { return x >> 31 != 0 ? 0 - x : x; });
}

#define SLUICE_COMPARE(name, T, Mask, expression)                                    \
  inline Mask _mm512_##name(__m512i a, __m512i b) {                                  \
    return static_cast<Mask>(mask_of<T>(a, b, [](T x, T y) { return expression; })); \
  }
SLUICE_COMPARE(cmpeq_epi8_mask, std::uint8_t, __mmask64, x == y)
SLUICE_COMPARE(cmpneq_epi8_mask, std::uint8_t, __mmask64, x != y)
SLUICE_COMPARE(cmplt_epu8_mask, std::uint8_t, __mmask64, x < y)
SLUICE_COMPARE(cmple_epu8_mask, std::uint8_t, __mmask64, x <= y)
SLUICE_COMPARE(cmpgt_epu8_mask, std::uint8_t, __mmask64, x > y)
SLUICE_COMPARE(cmpgt_epi8_mask, std::int8_t, __mmask64, x > y)
SLUICE_COMPARE(cmpeq_epi16_mask, std::uint16_t, __mmask32, x == y)
SLUICE_COMPARE(cmpeq_epi32_mask, std::uint32_t, __mmask16, x == y)
SLUICE_COMPARE(cmpgt_epi32_mask, std::int32_t, __mmask16, x > y)
SLUICE_COMPARE(cmplt_epi32_mask, std::int32_t, __mmask16, x < y)
SLUICE_COMPARE(test_epi8_mask, std::uint8_t, __mmask64, (x & y) != 0)
SLUICE_COMPARE(testn_epi8_mask, std::uint8_t, __mmask64, (x & y) == 0)
SLUICE_COMPARE(test_epi32_mask, std::uint32_t, __mmask16, (x & y) != 0)
#undef SLUICE_COMPARE
inline __mmask64 _mm512_mask_cmpeq_epi8_mask(__mmask64 k, __m512i a, __m512i b) {
  return k & _mm512_cmpeq_epi8_mask(a, b);
}

// The highest bit of each lane.
inline __mmask64 _mm512_movepi8_mask(__m512i a) {
  return mask_of<std::int8_t>(a, a, [](int x, int) { return x < 0; });
}
inline __mmask16 _mm512_movepi32_mask(__m512i a) {
  return static_cast<__mmask16>(mask_of<std::int32_t>(a, a, [](int x, int) { return x < 0; }));
}

// A saturated sum of two products, with unsigned first and signed second factors.
inline __m512i _mm512_maddubs_epi16(__m512i a, __m512i b) {
  const auto x = lanes<std::uint8_t>(a);
  const auto y = lanes<std::int8_t>(b);
  return made<__m512i, std::int16_t>([&](std::size_t i) {
    return saturated<std::int16_t>(std::int64_t{x[2 * i]} * y[2 * i] +
                                   std::int64_t{x[2 * i + 1]} * y[2 * i + 1]);
  });
}
// Wraps for four times −32768.
inline __m512i _mm512_madd_epi16(__m512i a, __m512i b) {
  const auto x = lanes<std::int16_t>(a), y = lanes<std::int16_t>(b);
  return made<__m512i, std::int32_t>([&](std::size_t i) {
    return std::int64_t{x[2 * i]} * y[2 * i] + std::int64_t{x[2 * i + 1]} * y[2 * i + 1];
  });
}
// Sums of 8 absolute differences, in 64 bits each.
inline __m512i _mm512_sad_epu8(__m512i a, __m512i b) {
  const auto x = lanes<std::uint8_t>(a), y = lanes<std::uint8_t>(b);
  return made<__m512i, std::uint64_t>([&](std::size_t i) {
    unsigned sum = 0;
    for (std::size_t j = 8 * i; j < 8 * i + 8; ++j) sum += x[j] < y[j] ? y[j] - x[j] : x[j] - y[j];
    return sum;
  });
}

// VNNI: adds four products of unsigned and signed bytes, or two products of words, to the lane; the sum
// wraps, or saturates in the forms with an s. The products themselves are exact.
template <class V>
inline std::int64_t byte_products(const Lanes<std::uint8_t, V>& a, const Lanes<std::int8_t, V>& b,
                                  std::size_t i) {
  std::int64_t sum = 0;
  for (std::size_t j = 4 * i; j < 4 * i + 4; ++j) sum += std::int64_t{a[j]} * b[j];
  return sum;
}
template <class V>
inline V dpbusd(const V& sum, const V& a, const V& b) {
  const auto s = lanes<std::int32_t>(sum);
  const auto x = lanes<std::uint8_t>(a);
  const auto y = lanes<std::int8_t>(b);
  return made<V, std::int32_t>([&](std::size_t i) { return s[i] + byte_products(x, y, i); });
}
template <class V>
inline V dpbusds(const V& sum, const V& a, const V& b) {
  const auto s = lanes<std::int32_t>(sum);
  const auto x = lanes<std::uint8_t>(a);
  const auto y = lanes<std::int8_t>(b);
  return made<V, std::int32_t>(
      [&](std::size_t i) { return saturated<std::int32_t>(s[i] + byte_products(x, y, i)); });
}
template <class V>
inline V dpwssd(const V& sum, const V& a, const V& b) {
  const auto s = lanes<std::int32_t>(sum);
  const auto x = lanes<std::int16_t>(a), y = lanes<std::int16_t>(b);
  return made<V, std::int32_t>([&](std::size_t i) {
    return s[i] + std::int64_t{x[2 * i]} * y[2 * i] + std::int64_t{x[2 * i + 1]} * y[2 * i + 1];
  });
}
inline __m512i _mm512_dpbusd_epi32(__m512i sum, __m512i a, __m512i b) { return dpbusd(sum, a, b); }
inline __m256i _mm256_dpbusd_epi32(__m256i sum, __m256i a, __m256i b) { return dpbusd(sum, a, b); }
inline __m512i _mm512_dpbusds_epi32(__m512i sum, __m512i a, __m512i b) { return dpbusds(sum, a, b); }
inline __m256i _mm256_dpbusds_epi32(__m256i sum, __m256i a, __m256i b) { return dpbusds(sum, a, b); }
inline __m512i _mm512_dpwssd_epi32(__m512i sum, __m512i a, __m512i b) { return dpwssd(sum, a, b); }
inline __m256i _mm256_dpwssd_epi32(__m256i sum, __m256i a, __m256i b) { return dpwssd(sum, a, b); }

inline int _mm512_reduce_add_epi32(__m512i a) {
  const auto x = lanes<std::uint32_t>(a);
  std::uint32_t sum = 0;
  for (const std::uint32_t lane : x.at) sum += lane;
  return static_cast<int>(sum);
}

}  // namespace
}  // namespace sluice::emulation
