// Moves lanes: within vectors, within their 128-bit quarters, and between vectors and parts of them.
#pragma once

#include "emulation/lanes.h"

namespace sluice::emulation {
namespace {

// Bytes of each quarter, selected by the low 4 bits of an index; 0 where its highest bit is set.
inline __m512i _mm512_shuffle_epi8(__m512i a, __m512i index) {
  const auto x = lanes<std::uint8_t>(a), at = lanes<std::uint8_t>(index);
  return made<__m512i, std::uint8_t>(
      [&](std::size_t i) { return (at[i] & 0x80) != 0 ? 0 : x[i / 16 * 16 + at[i] % 16]; });
}
inline __m512i _mm512_mask_shuffle_epi8(__m512i src, __mmask64 k, __m512i a, __m512i index) {
  return chosen<std::uint8_t>(k, _mm512_shuffle_epi8(a, index), src);
}
inline __m512i _mm512_maskz_shuffle_epi8(__mmask64 k, __m512i a, __m512i index) {
  return kept<std::uint8_t>(k, _mm512_shuffle_epi8(a, index));
}

// In quarters: alternating lanes of a and b, from their low or their high halves.
template <class T>
inline __m512i unpacked(__m512i a, __m512i b, std::size_t half) {
  constexpr std::size_t kInQuarter = 16 / sizeof(T);
  const auto x = lanes<T>(a), y = lanes<T>(b);
  return made<__m512i, T>([&](std::size_t i) {
    const std::size_t from = i / kInQuarter * kInQuarter + half * kInQuarter / 2 + i % kInQuarter / 2;
    return i % 2 == 0 ? x[from] : y[from];
  });
}
inline __m512i _mm512_unpacklo_epi8(__m512i a, __m512i b) { return unpacked<std::uint8_t>(a, b, 0); }
inline __m512i _mm512_unpackhi_epi8(__m512i a, __m512i b) { return unpacked<std::uint8_t>(a, b, 1); }
inline __m512i _mm512_unpacklo_epi16(__m512i a, __m512i b) { return unpacked<std::uint16_t>(a, b, 0); }
inline __m512i _mm512_unpackhi_epi16(__m512i a, __m512i b) { return unpacked<std::uint16_t>(a, b, 1); }
inline __m512i _mm512_unpacklo_epi32(__m512i a, __m512i b) { return unpacked<std::uint32_t>(a, b, 0); }
inline __m512i _mm512_unpackhi_epi32(__m512i a, __m512i b) { return unpacked<std::uint32_t>(a, b, 1); }
inline __m512i _mm512_unpacklo_epi64(__m512i a, __m512i b) { return unpacked<std::uint64_t>(a, b, 0); }
inline __m512i _mm512_unpackhi_epi64(__m512i a, __m512i b) { return unpacked<std::uint64_t>(a, b, 1); }

// In quarters: first the lanes of a, then those of b, saturated to half the width.
template <class T, class Narrow>
inline __m512i packed(__m512i a, __m512i b) {
  constexpr std::size_t kInQuarter = 16 / sizeof(T);
  const auto x = lanes<T>(a), y = lanes<T>(b);
  return made<__m512i, Narrow>([&](std::size_t i) {
    const std::size_t quarter = i / (2 * kInQuarter), place = i % (2 * kInQuarter);
    return saturated<Narrow>(place < kInQuarter ? x[quarter * kInQuarter + place]
                                                : y[quarter * kInQuarter + place - kInQuarter]);
  });
}
inline __m512i _mm512_packus_epi16(__m512i a, __m512i b) { return packed<std::int16_t, std::uint8_t>(a, b); }
inline __m512i _mm512_packs_epi16(__m512i a, __m512i b) { return packed<std::int16_t, std::int8_t>(a, b); }
inline __m512i _mm512_packus_epi32(__m512i a, __m512i b) { return packed<std::int32_t, std::uint16_t>(a, b); }
inline __m512i _mm512_packs_epi32(__m512i a, __m512i b) { return packed<std::int32_t, std::int16_t>(a, b); }

// Selects four lanes of each quarter by two bits each.
template <class V>
inline V permuted_in_quarters(const V& a, int control) {
  const auto x = lanes<std::uint32_t>(a);
  return made<V, std::uint32_t>([&](std::size_t i) { return x[i / 4 * 4 + (control >> i % 4 * 2 & 3)]; });
}
inline __m512 _mm512_permute_ps(__m512 a, int control) { return permuted_in_quarters(a, control); }
inline __m512i shuffled_epi32(__m512i a, int control) { return permuted_in_quarters(a, control); }
// A macro, because overload resolution would pick the compiler's own by the type of its argument
// _MM_PERM_ENUM.
#define _mm512_shuffle_epi32(a, control) shuffled_epi32(a, control)
// Two lanes of a, then two of b.
inline __m512 _mm512_shuffle_ps(__m512 a, __m512 b, int control) {
  const auto x = lanes<float>(a), y = lanes<float>(b);
  return made<__m512, float>(
      [&](std::size_t i) { return (i % 4 < 2 ? x : y)[i / 4 * 4 + (control >> i % 4 * 2 & 3)]; });
}
// Quarters: two of a, then two of b.
template <class V>
inline V quarters_shuffled(const V& a, const V& b, int control) {
  const auto x = lanes<std::uint32_t>(a), y = lanes<std::uint32_t>(b);
  return made<V, std::uint32_t>(
      [&](std::size_t i) { return (i < 8 ? x : y)[(control >> i / 4 * 2 & 3) * 4 + i % 4]; });
}
inline __m512 _mm512_shuffle_f32x4(__m512 a, __m512 b, int control) {
  return quarters_shuffled(a, b, control);
}
inline __m512i _mm512_shuffle_i32x4(__m512i a, __m512i b, int control) {
  return quarters_shuffled(a, b, control);
}
inline __m512i _mm512_shuffle_i64x2(__m512i a, __m512i b, int control) {
  return quarters_shuffled(a, b, control);
}

// Selects lanes of the whole vector by index; ignores index bits that are too high.
template <class T, class V>
inline V permuted(const V& a, const __m512i& index) {
  const auto x = lanes<T>(a);
  const auto at = lanes<T>(index);
  return made<V, T>([&](std::size_t i) { return x[at[i] % x.kCount]; });
}
inline __m512i _mm512_permutexvar_epi8(__m512i index, __m512i a) { return permuted<std::uint8_t>(a, index); }
inline __m512i _mm512_permutexvar_epi16(__m512i index, __m512i a) {
  return permuted<std::uint16_t>(a, index);
}
inline __m512i _mm512_permutexvar_epi32(__m512i index, __m512i a) {
  return permuted<std::uint32_t>(a, index);
}
inline __m512i _mm512_permutexvar_epi64(__m512i index, __m512i a) {
  return permuted<std::uint64_t>(a, index);
}
inline __m512 _mm512_permutexvar_ps(__m512i index, __m512 a) { return permuted<std::uint32_t>(a, index); }
inline __m512i _mm512_maskz_permutexvar_epi8(__mmask64 k, __m512i index, __m512i a) {
  return kept<std::uint8_t>(k, _mm512_permutexvar_epi8(index, a));
}
inline __m512i _mm512_mask_permutexvar_epi8(__m512i src, __mmask64 k, __m512i index, __m512i a) {
  return chosen<std::uint8_t>(k, _mm512_permutexvar_epi8(index, a), src);
}
// Selects from two vectors: the next index bit chooses b.
template <class T, class V>
inline V permuted(const V& a, const __m512i& index, const V& b) {
  const auto x = lanes<T>(a), y = lanes<T>(b);
  const auto at = lanes<T>(index);
  return made<V, T>([&](std::size_t i) { return ((at[i] & x.kCount) != 0 ? y : x)[at[i] % x.kCount]; });
}
inline __m512 _mm512_permutex2var_ps(__m512 a, __m512i index, __m512 b) {
  return permuted<std::uint32_t>(a, index, b);
}
inline __m512i _mm512_permutex2var_epi8(__m512i a, __m512i index, __m512i b) {
  return permuted<std::uint8_t>(a, index, b);
}
inline __m512i _mm512_permutex2var_epi16(__m512i a, __m512i index, __m512i b) {
  return permuted<std::uint16_t>(a, index, b);
}
inline __m512i _mm512_permutex2var_epi32(__m512i a, __m512i index, __m512i b) {
  return permuted<std::uint32_t>(a, index, b);
}
// Takes eight bits of each 64, starting at the bit that the low 6 bits of an index byte give, and wrapping
// round.
inline __m512i _mm512_multishift_epi64_epi8(__m512i index, __m512i a) {
  const auto x = lanes<std::uint64_t>(a);
  const auto at = lanes<std::uint8_t>(index);
  return made<__m512i, std::uint8_t>([&](std::size_t i) {
    const unsigned n = at[i] % 64;
    return n == 0 ? x[i / 8] : x[i / 8] >> n | x[i / 8] << (64 - n);
  });
}

// In quarters: 16 bytes from byte n of the concatenation of b and then a.
inline __m512i _mm512_alignr_epi8(__m512i a, __m512i b, int n) {
  const auto x = lanes<std::uint8_t>(a), y = lanes<std::uint8_t>(b);
  return made<__m512i, std::uint8_t>([&](std::size_t i) -> std::uint8_t {
    const std::size_t quarter = i / 16 * 16, from = i % 16 + static_cast<std::size_t>(n);
    return from < 16 ? y[quarter + from] : from < 32 ? x[quarter + from - 16] : 0;
  });
}

// The next byte of `a` for each place of the mask (VPEXPANDB), and selected bytes side by side (VPCOMPRESSB).
inline __m512i _mm512_mask_expand_epi8(__m512i src, __mmask64 k, __m512i a) {
  const auto x = lanes<std::uint8_t>(a);
  auto to = lanes<std::uint8_t>(src);
  for (std::size_t i = 0, next = 0; i < 64; ++i) {
    if ((k >> i & 1) != 0) to[i] = x[next++];
  }
  return vector(to);
}
inline __m512i _mm512_maskz_expand_epi8(__mmask64 k, __m512i a) {
  return _mm512_mask_expand_epi8(__m512i{}, k, a);
}
inline __m512i _mm512_mask_compress_epi8(__m512i src, __mmask64 k, __m512i a) {
  const auto x = lanes<std::uint8_t>(a);
  auto to = lanes<std::uint8_t>(src);
  for (std::size_t i = 0, next = 0; i < 64; ++i) {
    if ((k >> i & 1) != 0) to[next++] = x[i];
  }
  return vector(to);
}
inline __m512i _mm512_maskz_compress_epi8(__mmask64 k, __m512i a) {
  return _mm512_mask_compress_epi8(__m512i{}, k, a);
}

inline __m512i _mm512_mask_mov_epi8(__m512i src, __mmask64 k, __m512i a) {
  return chosen<std::uint8_t>(k, a, src);
}
inline __m512i _mm512_maskz_mov_epi8(__mmask64 k, __m512i a) { return kept<std::uint8_t>(k, a); }
inline __m512i _mm512_mask_mov_epi32(__m512i src, __mmask16 k, __m512i a) {
  return chosen<std::uint32_t>(k, a, src);
}
inline __m512i _mm512_mask_blend_epi8(__mmask64 k, __m512i a, __m512i b) {
  return chosen<std::uint8_t>(k, b, a);
}
inline __m512i _mm512_mask_blend_epi32(__mmask16 k, __m512i a, __m512i b) {
  return chosen<std::uint32_t>(k, b, a);
}
inline __m512 _mm512_mask_mov_ps(__m512 src, __mmask16 k, __m512 a) {
  return chosen<std::uint32_t>(k, a, src);
}
inline __m512 _mm512_mask_blend_ps(__mmask16 k, __m512 a, __m512 b) { return chosen<std::uint32_t>(k, b, a); }

// Part number `at` with the size of a Part.
template <class Part, class V>
inline Part extracted(const V& a, int at) {
  constexpr unsigned kParts = sizeof(V) / sizeof(Part);
  Part part;
  __builtin_memcpy(&part,
                   reinterpret_cast<const char*>(&a) + static_cast<unsigned>(at) % kParts * sizeof(Part),
                   sizeof(Part));
  return part;
}
template <class Part, class V>
inline V inserted(V a, const Part& part, int at) {
  constexpr unsigned kParts = sizeof(V) / sizeof(Part);
  __builtin_memcpy(reinterpret_cast<char*>(&a) + static_cast<unsigned>(at) % kParts * sizeof(Part), &part,
                   sizeof(Part));
  return a;
}
inline __m128i _mm512_extracti32x4_epi32(__m512i a, int at) { return extracted<__m128i>(a, at); }
inline __m256i _mm512_extracti64x4_epi64(__m512i a, int at) { return extracted<__m256i>(a, at); }
inline __m256i _mm512_extracti32x8_epi32(__m512i a, int at) { return extracted<__m256i>(a, at); }
inline __m128 _mm512_extractf32x4_ps(__m512 a, int at) { return extracted<__m128>(a, at); }
inline __m256 _mm512_extractf32x8_ps(__m512 a, int at) { return extracted<__m256>(a, at); }
inline __m512i _mm512_inserti32x4(__m512i a, __m128i part, int at) { return inserted(a, part, at); }
inline __m512i _mm512_inserti64x4(__m512i a, __m256i part, int at) { return inserted(a, part, at); }
inline __m512i _mm512_inserti32x8(__m512i a, __m256i part, int at) { return inserted(a, part, at); }

template <class Part>
inline __m512i repeated(const Part& part) {
  __m512i a;
  for (std::size_t at = 0; at < sizeof(a); at += sizeof(part))
    __builtin_memcpy(reinterpret_cast<char*>(&a) + at, &part, sizeof(part));
  return a;
}
inline __m512i _mm512_broadcast_i32x4(__m128i a) { return repeated(a); }
inline __m512i _mm512_broadcast_i64x4(__m256i a) { return repeated(a); }
inline __m512i _mm512_broadcastb_epi8(__m128i a) { return repeated(lanes<std::uint8_t>(a)[0]); }
inline __m512i _mm512_broadcastw_epi16(__m128i a) { return repeated(lanes<std::uint16_t>(a)[0]); }
inline __m512i _mm512_broadcastd_epi32(__m128i a) { return repeated(lanes<std::uint32_t>(a)[0]); }
inline __m512i _mm512_broadcastq_epi64(__m128i a) { return repeated(lanes<std::uint64_t>(a)[0]); }

}  // namespace
}  // namespace sluice::emulation
