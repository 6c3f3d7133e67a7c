// TileKernels::round on AVX-512 (F, VL).
#pragma once

#include <cstddef>

#include "base/machine/avx512_intrinsics.h"

namespace sluice::kernels {
namespace {

inline void round(const float* x, std::size_t cols, std::byte* row) {
  const __m512i half = _mm512_set1_epi32(0x7fff), one = _mm512_set1_epi32(1), quiet = _mm512_set1_epi32(0x40);
  for (std::size_t c = 0; c < (cols + 63) / 64 * 64; c += 16) {
    const std::size_t left = c < cols ? cols - c : 0;
    const __mmask16 there = static_cast<__mmask16>(left >= 16 ? 0xffff : (1u << left) - 1);
    const __m512 numbers = _mm512_maskz_loadu_ps(there, x + c);
    const __m512i bits = _mm512_castps_si512(numbers), high = _mm512_srli_epi32(bits, 16);
    const __m512i odd = _mm512_and_si512(high, one);
    __m512i rounded = _mm512_srli_epi32(_mm512_add_epi32(_mm512_add_epi32(bits, half), odd), 16);
    const __mmask16 nan = _mm512_cmp_ps_mask(numbers, numbers, _CMP_UNORD_Q);
    rounded = _mm512_mask_or_epi32(rounded, nan, high, quiet);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(row + 2 * c), _mm512_cvtepi32_epi16(rounded));
  }
}

}  // namespace
}  // namespace sluice::kernels
