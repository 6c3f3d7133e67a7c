// A line in one register of AVX-512: shared by native_chunk_avx512.cc and native_chunk_avx512vbmi2.cc.
#pragma once

#include "base/machine/avx512_intrinsics.h"
#include "codec/native/native_chunk_impl.h"

namespace sluice::codec {
namespace {

struct Line {
  __m512i v;
};
using Mask = __mmask64;

[[gnu::always_inline]] inline Line load(const std::byte* p) { return {_mm512_loadu_si512(p)}; }
[[gnu::always_inline]] inline void store(std::byte* p, Line line) { _mm512_storeu_si512(p, line.v); }
[[gnu::always_inline]] inline void stream(std::byte* p, Line line) {
  _mm512_stream_si512(reinterpret_cast<__m512i*>(p), line.v);
}
[[gnu::always_inline]] inline void streamed() { _mm_sfence(); }

[[gnu::always_inline]] inline Mask first_places(std::int64_t n) { return n <= 0 ? 0 : ~Mask{0} >> (64 - n); }
[[gnu::always_inline]] inline Mask both(Mask a, Mask b) { return a & b; }

[[gnu::always_inline]] inline __m512i set1(unsigned value) {
  return _mm512_set1_epi8(static_cast<char>(value));
}

// Takes bits of `if_one` where the mask has 1, of the other where it has 0.
[[gnu::always_inline]] inline __m512i select(__m512i mask, __m512i if_one, __m512i if_zero) {
  return _mm512_ternarylogic_epi64(mask, if_one, if_zero, 0xca);
}

template <int, class Codes>
[[gnu::always_inline]] inline Mask escapes(const Codes&, Line entries) {
  return _mm512_cmpeq_epi8_mask(entries.v, set1(255));
}

[[gnu::always_inline]] inline Line rotated(Line exponents) {
  return {select(set1(0x7f), _mm512_srli_epi16(exponents.v, 1), _mm512_slli_epi16(exponents.v, 7))};
}

[[gnu::always_inline]] inline void words_of(Line exponents, Line sm, Line& low, Line& high) {
  const __m512i first = select(set1(0x7f), sm.v, exponents.v);  // first bytes of the words
  const __m512i second = select(set1(0x7f), exponents.v, sm.v);
  low.v = _mm512_unpacklo_epi8(first, second);
  high.v = _mm512_unpackhi_epi8(first, second);
}

}  // namespace
}  // namespace sluice::codec
