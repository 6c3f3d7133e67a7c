// Sums of products of codes by AVX512-VNNI: VPDPBUSD adds four of them to 32 bits, without saturation. See
// integer-inl.h.
#pragma once

#include "kernels/lanes/code_line_avx512-inl.h"

namespace sluice::kernels {
namespace {

inline constexpr unsigned kMostCode = 255;
inline constexpr int kIntegerTokens[] = {12, 12};

inline CodeLine add_products(CodeLine sums, CodeLine codes, CodeLine x) {
  return {_mm512_dpbusd_epi32(sums.v, codes.v, x.v)};
}
inline CodeLine whole_sums(CodeLine sums, unsigned shift) { return {_mm512_slli_epi32(sums.v, shift)}; }

}  // namespace
}  // namespace sluice::kernels
