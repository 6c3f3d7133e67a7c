// Sums of products of codes on AVX-512 without VNNI. See code_sums-inl.h.
#pragma once

#include "base/machine/avx512_intrinsics.h"

// Must follow the include of the intrinsics.
#include "kernels/lanes/code_pairs_ymm-inl.h"
#include "kernels/lanes/code_tile_avx512-inl.h"

namespace sluice::kernels {
namespace {

[[gnu::always_inline]] inline void store_sizes(const std::int32_t* codes, std::int32_t* sizes) {
  _mm512_storeu_si512(sizes, _mm512_abs_epi8(_mm512_loadu_si512(codes)));
}

struct QuadSums {  // 32 whole numbers of 16 bits
  __m512i v;
};
// AVX-512 has no VPSIGNB. Where a code is 0, so is its size.
template <bool kSigned>
[[gnu::always_inline]] inline QuadSums quad_products(TileCodes w, TileCodes size, Repeated x) {
  if constexpr (kSigned) {
    const __m512i signs = _mm512_mask_sub_epi8(x.v, _mm512_movepi8_mask(w.v), _mm512_setzero_si512(), x.v);
    return {_mm512_maddubs_epi16(size.v, signs)};
  }
  return {_mm512_maddubs_epi16(w.v, x.v)};
}
template <bool kSigned>
[[gnu::always_inline]] inline QuadSums add_quad(QuadSums sums, TileCodes w, TileCodes size, Repeated x) {
  return {_mm512_add_epi16(sums.v, quad_products<kSigned>(w, size, x).v)};
}
[[gnu::always_inline]] inline TileWhole whole_of(QuadSums sums) {
  return {_mm512_madd_epi16(sums.v, _mm512_set1_epi16(1))};
}

}  // namespace
}  // namespace sluice::kernels
