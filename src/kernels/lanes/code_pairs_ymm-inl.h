// Products of codes by VPMADDUBSW, on AVX2 and on AVX-512 without VNNI. See code_sums-inl.h.
//
// VPMADDUBSW adds two products in 16 bits. Unsigned codes are at most 63: 2·63·127 = 16002. With signed ones
// it takes |w| ≤ 128 as the unsigned factor and moves the sign to the other side: 2·128·127 = 32512, below
// 2^15. A sum of n such pairs stays below 2^15 as well for n ≤ kPairsIn16, so that many are added before they
// are widened.
#pragma once

#include "kernels/lanes/code_sums_ymm-inl.h"

namespace sluice::kernels {
namespace {

template <unsigned kMost>
inline constexpr unsigned kPairsIn16 = 32767 / (2 * 127 * (kMost == 0 ? 128 : kMost));
static_assert(kPairsIn16<15> == 8 && kPairsIn16<24> == 5 && kPairsIn16<31> == 4 && kPairsIn16<63> == 2 &&
              kPairsIn16<0> == 1);

inline constexpr int kSignedZero = 0;
inline constexpr bool kSizesApart = true;

// Sums of pairs in 16 bits.
[[gnu::always_inline]] inline Whole8 widened(__m256i pairs) {
  return {_mm256_madd_epi16(pairs, _mm256_set1_epi16(1))};
}
template <unsigned kMost>
[[gnu::always_inline]] inline Whole8 products(CodeBytes w, const std::byte* x) {
  static_assert(kPairsIn16<kMost> >= 2);
  return widened(_mm256_maddubs_epi16(w.v, load_whole(x)));
}
[[gnu::always_inline]] inline Whole8 signed_products(CodeBytes w, const std::byte* x) {
  return widened(_mm256_maddubs_epi16(_mm256_abs_epi8(w.v), _mm256_sign_epi8(load_whole(x), w.v)));
}
[[gnu::always_inline]] inline CodeBytes signed_factors(CodeBytes w) { return w; }

}  // namespace
}  // namespace sluice::kernels
