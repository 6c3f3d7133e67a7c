// Tiles of sixteen rows in registers of AVX-512: all but the products themselves. A single row is taken in
// registers of AVX2: 32 columns fill one. See code_sums-inl.h.
#pragma once

#include "kernels/lanes/code_sums_ymm-inl.h"

namespace sluice::kernels {
namespace {

inline constexpr unsigned kLanes = 16;
inline constexpr int kTileCodedTokens = 8;  // in registers: two sums each. Not measured.
inline constexpr std::size_t kCodedTokens = 32;

struct TileFloats {
  __m512 v;
};
struct TileWhole {
  __m512i v;
};
struct TileCodes {
  __m512i v;
};

[[gnu::always_inline]] inline TileFloats tile_equal(float x) { return {_mm512_set1_ps(x)}; }
[[gnu::always_inline]] inline TileFloats tile_floats(const float* p) { return {_mm512_loadu_ps(p)}; }
[[gnu::always_inline]] inline TileWhole tile_whole(const std::int32_t* p) { return {_mm512_loadu_si512(p)}; }
[[gnu::always_inline]] inline TileCodes tile_codes(const std::int32_t* p) { return {_mm512_loadu_si512(p)}; }
[[gnu::always_inline]] inline void store_floats(float* p, TileFloats a) { _mm512_storeu_ps(p, a.v); }

[[gnu::always_inline]] inline TileFloats floats_of(TileWhole a) { return {_mm512_cvtepi32_ps(a.v)}; }
[[gnu::always_inline]] inline TileFloats times(TileFloats a, TileFloats b) {
  return {_mm512_mul_ps(a.v, b.v)};
}
[[gnu::always_inline]] inline TileFloats times_plus(TileFloats a, TileFloats b, TileFloats c) {
  return {_mm512_fmadd_ps(a.v, b.v, c.v)};
}
[[gnu::always_inline]] inline TileFloats times_plus(TileFloats a, float n, TileFloats c) {
  return times_plus(a, tile_equal(n), c);
}
[[gnu::always_inline]] inline TileWhole plus(TileWhole a, TileWhole b) {
  return {_mm512_add_epi32(a.v, b.v)};
}
[[gnu::always_inline]] inline TileWhole times(TileWhole a, TileWhole b) {
  return {_mm512_mullo_epi32(a.v, b.v)};
}
[[gnu::always_inline]] inline TileWhole times(TileWhole a, int n) {
  return {_mm512_mullo_epi32(a.v, _mm512_set1_epi32(n))};
}

struct Repeated {
  __m512i v;
};
[[gnu::always_inline]] inline Repeated four_bytes(const std::byte* p) {
  int word;
  __builtin_memcpy(&word, p, sizeof(word));
  return {_mm512_set1_epi32(word)};
}
[[gnu::always_inline]] inline TileWhole pairs_by(TileWhole a, Repeated b) {
  return {_mm512_madd_epi16(a.v, b.v)};
}
[[gnu::always_inline]] inline TileWhole first_of_pairs(TileWhole a) {
  return {_mm512_srai_epi32(_mm512_slli_epi32(a.v, 16), 16)};
}
[[gnu::always_inline]] inline TileWhole second_of_pairs(TileWhole a) { return {_mm512_srai_epi32(a.v, 16)}; }

}  // namespace
}  // namespace sluice::kernels
