// Sums of products of codes on AVX2. See code_sums-inl.h.
//
// VPMADDUBSW adds two products in 16 bits. Unsigned codes are at most 63: 2·63·127 = 16002. With signed ones
// it takes |w| ≤ 128 as the unsigned factor and moves the sign to the other side: 2·128·127 = 32512, below
// 2^15. A sum of n such pairs stays below 2^15 as well for n ≤ kPairsIn16, so that many are added before they
// are widened.
#pragma once

#include <immintrin.h>

#include <cstddef>
#include <cstdint>

#include "kernels/lanes/code_bytes_in_order-inl.h"
#include "kernels/lanes/code_sums-inl.h"

namespace sluice::kernels {
namespace {

struct Whole8 {
  __m256i v;
};
struct Float8 {
  __m256 v;
};
struct Scales16 {  // signed bytes
  __m128i v;
};

template <unsigned kMost>
inline constexpr unsigned kPairsIn16 = 32767 / (2 * 127 * kMost);
static_assert(kPairsIn16<15> == 8 && kPairsIn16<24> == 5 && kPairsIn16<31> == 4 && kPairsIn16<63> == 2 &&
              kPairsIn16<128> == 1);

[[gnu::always_inline]] inline __m256i load_whole(const void* p) {
  return _mm256_loadu_si256(static_cast<const __m256i*>(p));
}
[[gnu::always_inline]] inline Whole8 no_whole() { return {_mm256_setzero_si256()}; }
[[gnu::always_inline]] inline Float8 no_floats() { return {_mm256_setzero_ps()}; }
[[gnu::always_inline]] inline Float8 all_equal(float x) { return {_mm256_set1_ps(x)}; }
[[gnu::always_inline]] inline Float8 load_floats(const float* p) { return {_mm256_loadu_ps(p)}; }
[[gnu::always_inline]] inline void store_floats(float* p, Float8 a) { _mm256_storeu_ps(p, a.v); }
[[gnu::always_inline]] inline Float8 floats_of(Whole8 a) { return {_mm256_cvtepi32_ps(a.v)}; }
[[gnu::always_inline]] inline Float8 times(Float8 a, Float8 b) { return {_mm256_mul_ps(a.v, b.v)}; }
[[gnu::always_inline]] inline Float8 times_plus(Float8 a, Float8 b, Float8 c) {
  return {_mm256_fmadd_ps(a.v, b.v, c.v)};
}
[[gnu::always_inline]] inline Whole8 plus(Whole8 a, Whole8 b) { return {_mm256_add_epi32(a.v, b.v)}; }
[[gnu::always_inline]] inline Whole8 times(Whole8 a, int n) {
  return {_mm256_mullo_epi32(a.v, _mm256_set1_epi32(n))};
}

// Lane l takes l+4, then l+2, l+1.
[[gnu::always_inline]] inline float sum_of_lanes(Float8 a) {
  const __m128 by4 = _mm_add_ps(_mm256_castps256_ps128(a.v), _mm256_extractf128_ps(a.v, 1));
  const __m128 by2 = _mm_add_ps(by4, _mm_movehl_ps(by4, by4));
  return _mm_cvtss_f32(_mm_add_ss(by2, _mm_movehdup_ps(by2)));
}

// What codes of four bits stand for.
struct alignas(16) ByteTable {
  std::int8_t values[16];
};
[[gnu::always_inline]] inline CodeBytes bytes_of(CodeBytes codes, const ByteTable& table) {
  const __m256i all =
      _mm256_broadcastsi128_si256(_mm_load_si128(reinterpret_cast<const __m128i*>(table.values)));
  return {_mm256_shuffle_epi8(all, codes.v)};
}

struct PairSums {  // sixteen whole numbers of 16 bits
  __m256i v;
};
[[gnu::always_inline]] inline Whole8 widened(PairSums pairs) {
  return {_mm256_madd_epi16(pairs.v, _mm256_set1_epi16(1))};
}
[[gnu::always_inline]] inline PairSums add_pairs(PairSums a, PairSums b) {
  return {_mm256_add_epi16(a.v, b.v)};
}
template <unsigned kMost>
[[gnu::always_inline]] inline Whole8 products(CodeBytes w, const std::byte* x) {
  static_assert(kPairsIn16<kMost> >= 2);
  return widened({_mm256_maddubs_epi16(w.v, load_whole(x))});
}
[[gnu::always_inline]] inline Whole8 signed_products(CodeBytes w, const std::byte* x) {
  return widened({_mm256_maddubs_epi16(_mm256_abs_epi8(w.v), _mm256_sign_epi8(load_whole(x), w.v))});
}

// The sums of the lower halves of four vectors, then those of their upper halves.
[[gnu::always_inline]] inline __m256i sums_of_four(const Whole8* v) {
  return _mm256_hadd_epi32(_mm256_hadd_epi32(v[0].v, v[1].v), _mm256_hadd_epi32(v[2].v, v[3].v));
}
[[gnu::always_inline]] inline Whole8 joined(__m256i first, __m256i second) {
  return {_mm256_add_epi32(_mm256_permute2x128_si256(first, second, 0x20),
                           _mm256_permute2x128_si256(first, second, 0x31))};
}
[[gnu::always_inline]] inline Whole8 sums_of_eight(const Whole8 (&v)[8]) {
  return joined(sums_of_four(v), sums_of_four(v + 4));
}
[[gnu::always_inline]] inline Whole8 weighed_sums(const Whole8 (&v)[8], Scales16 s) {
  const __m128i order = _mm_setr_epi8(0, 2, 4, 6, 1, 3, 5, 7, 8, 10, 12, 14, 9, 11, 13, 15);
  const __m128i scales = _mm_shuffle_epi8(s.v, order);
  return joined(_mm256_mullo_epi32(sums_of_four(v), _mm256_cvtepi8_epi32(scales)),
                _mm256_mullo_epi32(sums_of_four(v + 4), _mm256_cvtepi8_epi32(_mm_srli_si128(scales, 8))));
}

[[gnu::always_inline]] inline Scales16 sixteen_scales(std::uint64_t low, std::uint64_t high, int minus) {
  const __m128i bytes = _mm_set_epi64x(static_cast<long long>(high), static_cast<long long>(low));
  return {_mm_sub_epi8(bytes, _mm_set1_epi8(static_cast<char>(minus)))};
}
// In each lane two scales, as whole numbers of 16 bits.
[[gnu::always_inline]] inline Whole8 pairs_of(Scales16 s) { return {_mm256_cvtepi8_epi16(s.v)}; }
[[gnu::always_inline]] inline Whole8 halves_by(Scales16 s, const std::byte* p) {
  return {_mm256_madd_epi16(pairs_of(s).v, load_whole(p))};
}

// Numbers for eight groups.
[[gnu::always_inline]] inline Float8 of_halves(const std::uint16_t (&halves)[8]) {
  return {_mm256_cvtph_ps(_mm_set_epi16(static_cast<short>(halves[7]), static_cast<short>(halves[6]),
                                        static_cast<short>(halves[5]), static_cast<short>(halves[4]),
                                        static_cast<short>(halves[3]), static_cast<short>(halves[2]),
                                        static_cast<short>(halves[1]), static_cast<short>(halves[0])))};
}
[[gnu::always_inline]] inline Float8 of_signed(std::uint64_t bytes) {
  return floats_of({_mm256_cvtepi8_epi32(_mm_cvtsi64_si128(static_cast<long long>(bytes)))});
}
// 2^(e − 128), subnormal for 0 and 1.
[[gnu::always_inline]] inline Float8 half_powers(std::uint64_t bytes) {
  const __m256i e = _mm256_cvtepu8_epi32(_mm_cvtsi64_si128(static_cast<long long>(bytes))),
                one = _mm256_set1_epi32(1);
  const __m256i normal = _mm256_slli_epi32(_mm256_sub_epi32(e, one), 23),
                small = _mm256_sllv_epi32(_mm256_set1_epi32(0x00200000), e);
  return {_mm256_castsi256_ps(_mm256_blendv_epi8(small, normal, _mm256_cmpgt_epi32(e, one)))};
}

// Tiles of eight rows.

inline constexpr int kTileCodedTokens = 4;  // in registers: two sums each

[[gnu::always_inline]] inline Whole8 load_whole8(const std::int32_t* p) { return {load_whole(p)}; }
[[gnu::always_inline]] inline void store_whole(std::int32_t* p, Whole8 a) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), a.v);
}
[[gnu::always_inline]] inline CodeBytes load_codes(const std::int32_t* p) { return {load_whole(p)}; }
[[gnu::always_inline]] inline void store_codes(std::int32_t* p, CodeBytes a) { store_whole(p, {a.v}); }
// |codes|, as unsigned bytes.
[[gnu::always_inline]] inline void store_sizes(const std::int32_t* codes, std::int32_t* sizes) {
  store_whole(sizes, {_mm256_abs_epi8(load_whole(codes))});
}

// Eight rows of eight words become eight columns.
[[gnu::always_inline]] inline void transpose_words(const void* from, std::size_t from_bytes, void* to,
                                                   std::size_t to_bytes) {
  const auto* const in = static_cast<const std::byte*>(from);
  auto* const out = static_cast<std::byte*>(to);
  __m256i a[8], b[8];
#pragma GCC unroll 8
  for (int i = 0; i < 8; ++i) a[i] = load_whole(in + i * from_bytes);
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    b[2 * i] = _mm256_unpacklo_epi32(a[2 * i], a[2 * i + 1]);
    b[2 * i + 1] = _mm256_unpackhi_epi32(a[2 * i], a[2 * i + 1]);
  }
#pragma GCC unroll 2
  for (int i = 0; i < 2; ++i) {
#pragma GCC unroll 2
    for (int j = 0; j < 2; ++j) {
      a[4 * i + 2 * j] = _mm256_unpacklo_epi64(b[4 * i + j], b[4 * i + 2 + j]);
      a[4 * i + 2 * j + 1] = _mm256_unpackhi_epi64(b[4 * i + j], b[4 * i + 2 + j]);
    }
  }
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    const auto put = [&](int row, __m256i v) {
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(out + row * to_bytes), v);
    };
    put(i, _mm256_permute2x128_si256(a[i], a[4 + i], 0x20));
    put(4 + i, _mm256_permute2x128_si256(a[i], a[4 + i], 0x31));
  }
}

// Four codes of a token, or a pair of whole numbers of 16 bits, for all rows.
struct Repeated {
  __m256i v;
};
[[gnu::always_inline]] inline Repeated four_codes(const std::byte* p) {
  int word;
  __builtin_memcpy(&word, p, sizeof(word));
  return {_mm256_set1_epi32(word)};
}
// The pairs of a quad of columns: weights of eight rows, activations of a token. size: |w| of signed ones.
template <bool kSigned>
[[gnu::always_inline]] inline PairSums pair_products(CodeBytes w, CodeBytes size, Repeated x) {
  if constexpr (kSigned) return {_mm256_maddubs_epi16(size.v, _mm256_sign_epi8(x.v, w.v))};
  return {_mm256_maddubs_epi16(w.v, x.v)};
}
[[gnu::always_inline]] inline Whole8 pairs_by(Whole8 a, Repeated b) { return {_mm256_madd_epi16(a.v, b.v)}; }
[[gnu::always_inline]] inline Whole8 times(Whole8 a, Whole8 b) { return {_mm256_mullo_epi32(a.v, b.v)}; }
[[gnu::always_inline]] inline Whole8 first_of_pairs(Whole8 a) {
  return {_mm256_srai_epi32(_mm256_slli_epi32(a.v, 16), 16)};
}
[[gnu::always_inline]] inline Whole8 second_of_pairs(Whole8 a) { return {_mm256_srai_epi32(a.v, 16)}; }

}  // namespace
}  // namespace sluice::kernels
