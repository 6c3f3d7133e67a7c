// Sums of products of codes on AVX-512 without VNNI, as integer_line_avx2-inl.h does. See integer-inl.h.
#pragma once

#include "kernels/lanes/code_line_avx512-inl.h"

namespace sluice::kernels {
namespace {

inline constexpr unsigned kMostCode = 15;
inline constexpr int kIntegerTokens[] = {12, 8};

inline CodeLine add_products(CodeLine sums, CodeLine codes, CodeLine x) {
  sums.v = _mm512_add_epi16(sums.v, _mm512_maddubs_epi16(codes.v, x.v));
  // In a register, as on AVX2: otherwise all products of a group are kept.
  load_apart(sums.v);
  return sums;
}
inline CodeLine whole_sums(CodeLine sums, unsigned shift) {
  return {_mm512_madd_epi16(sums.v, _mm512_set1_epi16(static_cast<short>(1 << shift)))};
}

}  // namespace
}  // namespace sluice::kernels
