// Sums of products of codes on AVX2. See code_sums-inl.h.
#pragma once

#include <immintrin.h>

#include <cstddef>
#include <cstdint>

#include "kernels/lanes/code_pairs_ymm-inl.h"

namespace sluice::kernels {
namespace {

inline constexpr unsigned kLanes = 8;
inline constexpr int kTileCodedTokens = 4;  // in registers: two sums each
inline constexpr std::size_t kCodedTokens = 48;

using TileFloats = Float8;
using TileWhole = Whole8;
using TileCodes = CodeBytes;

[[gnu::always_inline]] inline TileFloats tile_equal(float x) { return all_equal(x); }
[[gnu::always_inline]] inline TileFloats tile_floats(const float* p) { return load_floats(p); }
[[gnu::always_inline]] inline TileWhole tile_whole(const std::int32_t* p) { return {load_whole(p)}; }
[[gnu::always_inline]] inline TileCodes tile_codes(const std::int32_t* p) { return {load_whole(p)}; }
[[gnu::always_inline]] inline void store_sizes(const std::int32_t* codes, std::int32_t* sizes) {
  store_whole(sizes, {_mm256_abs_epi8(load_whole(codes))});
}

struct Repeated {
  __m256i v;
};
[[gnu::always_inline]] inline Repeated four_bytes(const std::byte* p) {
  int word;
  __builtin_memcpy(&word, p, sizeof(word));
  return {_mm256_set1_epi32(word)};
}

struct QuadSums {  // sixteen whole numbers of 16 bits
  __m256i v;
};
template <bool kSigned>
[[gnu::always_inline]] inline QuadSums quad_products(TileCodes w, TileCodes size, Repeated x) {
  if constexpr (kSigned) return {_mm256_maddubs_epi16(size.v, _mm256_sign_epi8(x.v, w.v))};
  return {_mm256_maddubs_epi16(w.v, x.v)};
}
template <bool kSigned>
[[gnu::always_inline]] inline QuadSums add_quad(QuadSums sums, TileCodes w, TileCodes size, Repeated x) {
  return {_mm256_add_epi16(sums.v, quad_products<kSigned>(w, size, x).v)};
}
[[gnu::always_inline]] inline TileWhole whole_of(QuadSums sums) { return widened(sums.v); }

[[gnu::always_inline]] inline TileWhole pairs_by(TileWhole a, Repeated b) {
  return {_mm256_madd_epi16(a.v, b.v)};
}
[[gnu::always_inline]] inline TileWhole times(TileWhole a, TileWhole b) {
  return {_mm256_mullo_epi32(a.v, b.v)};
}
[[gnu::always_inline]] inline TileWhole first_of_pairs(TileWhole a) {
  return {_mm256_srai_epi32(_mm256_slli_epi32(a.v, 16), 16)};
}
[[gnu::always_inline]] inline TileWhole second_of_pairs(TileWhole a) { return {_mm256_srai_epi32(a.v, 16)}; }

}  // namespace
}  // namespace sluice::kernels
