// A line in one register of AVX-512: shared by native_encode_avx512.cc and native_encode_avx512vbmi2.cc.
#pragma once

#include <cstdint>

#include "base/machine/avx512_intrinsics.h"
#include "codec/native/native_encode_impl.h"

namespace sluice::codec {
namespace {

struct Line {
  __m512i v;
};
using Mask = __mmask64;

[[gnu::always_inline]] inline Line load(const std::byte* p) { return {_mm512_loadu_si512(p)}; }
[[gnu::always_inline]] inline void store(std::byte* p, Line line) { _mm512_storeu_si512(p, line.v); }
[[gnu::always_inline]] inline Line filled(unsigned value) {
  return {_mm512_set1_epi8(static_cast<char>(value))};
}
[[gnu::always_inline]] inline Mask equal(Line a, Line b) { return _mm512_cmpeq_epi8_mask(a.v, b.v); }
[[gnu::always_inline]] inline Line chosen(Mask mask, Line a, Line b) {
  return {_mm512_mask_mov_epi8(b.v, mask, a.v)};
}
template <int kShift>
[[gnu::always_inline]] inline Line joined(Line a, Line b) {
  return {_mm512_or_si512(a.v, _mm512_slli_epi16(b.v, kShift))};
}
[[gnu::always_inline]] inline Line low_bits(Line a, unsigned mask) {
  return {_mm512_and_si512(a.v, filled(mask).v)};
}
template <int kFrom, int kTo>
[[gnu::always_inline]] inline Line bit_of(Line a) {
  return {_mm512_slli_epi16(low_bits(a, 1u << kFrom).v, kTo - kFrom)};
}

[[gnu::always_inline]] inline void split_line(const std::byte* words, std::byte* exponents,
                                              std::byte* sign_mantissas) {
  const __m512i low = load(words).v, high = load(words + 64).v;
  const auto exponent = [](__m512i w) __attribute__((always_inline)) {
    return _mm512_and_si512(_mm512_srli_epi16(w, 7), _mm512_set1_epi16(0xff));
  };
  const auto sign_mantissa = [](__m512i w) __attribute__((always_inline)) {
    const __m512i sign = _mm512_and_si512(_mm512_srli_epi16(w, 8), _mm512_set1_epi16(0x80));
    return _mm512_or_si512(sign, _mm512_and_si512(w, _mm512_set1_epi16(0x7f)));
  };
  // packus takes 8 words of each in turn within 128 bits, which is the order of a line.
  store(exponents, {_mm512_packus_epi16(exponent(low), exponent(high))});
  store(sign_mantissas, {_mm512_packus_epi16(sign_mantissa(low), sign_mantissa(high))});
}

}  // namespace
}  // namespace sluice::codec
