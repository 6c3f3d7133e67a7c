// Sums of products of codes by AVX512-VNNI: VPDPBUSD adds four of them to 32 bits, without saturation. See
// code_sums-inl.h. Its first factor has no sign, so signed codes are multiplied as codes plus 128.
#pragma once

#include "base/machine/avx512_intrinsics.h"

// Must follow the include of the intrinsics.
#include "kernels/lanes/code_tile_avx512-inl.h"

namespace sluice::kernels {
namespace {

template <unsigned kMost>
inline constexpr unsigned kPairsIn16 = 8;  // all of a group: sums have 32 bits

inline constexpr int kSignedZero = 128;
inline constexpr bool kSizesApart = false;

[[gnu::always_inline]] inline CodeBytes signed_factors(CodeBytes w) {
  return {_mm256_xor_si256(w.v, _mm256_set1_epi8(-128))};
}
inline void store_sizes(const std::int32_t*, std::int32_t*) {}  // none are apart
template <unsigned kMost>
[[gnu::always_inline]] inline Whole8 products(CodeBytes w, const std::byte* x) {
  return {_mm256_dpbusd_epi32(_mm256_setzero_si256(), w.v, load_whole(x))};
}
[[gnu::always_inline]] inline Whole8 signed_products(CodeBytes w, const std::byte* x) {
  return products<255>(signed_factors(w), x);
}

using QuadSums = TileWhole;
template <bool kSigned>
[[gnu::always_inline]] inline QuadSums add_quad(QuadSums sums, TileCodes w, TileCodes, Repeated x) {
  return {_mm512_dpbusd_epi32(sums.v, w.v, x.v)};
}
template <bool kSigned>
[[gnu::always_inline]] inline QuadSums quad_products(TileCodes w, TileCodes size, Repeated x) {
  return add_quad<kSigned>({_mm512_setzero_si512()}, w, size, x);
}
[[gnu::always_inline]] inline TileWhole whole_of(QuadSums sums) { return sums; }

}  // namespace
}  // namespace sluice::kernels
