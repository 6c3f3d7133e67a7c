// Eight rows of a packed matrix times few tokens, in registers: a line is decoded, made words, multiplied and
// dropped. The plain version, which packed_matmul.cc also uses for more tokens, decodes words into a buffer
// and calls matmul.
#pragma once

#include "kernels/lanes/vec_avx512-inl.h"
#include "kernels/products/packed/packed_lines_avx512-inl.h"

namespace sluice::kernels {
namespace {

// A line of words times its 64 columns, in the order of matmul.h.
[[gnu::always_inline]] inline Vec dot_line(__m512i low, __m512i high, const float* x, Vec sum) {
  const __m512i odd = _mm512_set1_epi32(static_cast<int>(0xffff0000u));
  const auto number = [](__m512i bits) { return Vec{_mm512_castsi512_ps(bits)}; };
  sum = fma(number(_mm512_slli_epi32(low, 16)), load(x), sum);
  sum = fma(number(_mm512_and_si512(low, odd)), load(x + 16), sum);
  sum = fma(number(_mm512_slli_epi32(high, 16)), load(x + 32), sum);
  return fma(number(_mm512_and_si512(high, odd)), load(x + 48), sum);
}

template <int T>
bool few_tokens(const PackedGroupArgs& a) {
  Vec sums[kTileRows][T];
#pragma GCC unroll 8
  for (auto& row : sums) {
#pragma GCC unroll 2
    for (Vec& sum : row) sum = zero();
  }
  const bool good = for_each_word_line<NextGroup>(
      a.rows, [&]<int kRow>(std::uint64_t block, codec::TileRow<kRow>, __m512i low,
                            __m512i high) __attribute__((always_inline)) {
#pragma GCC unroll 2
        for (int t = 0; t < T; ++t) {
          const float* const x = a.x + static_cast<std::size_t>(t) * a.x_stride + block * kTileColumns;
          sums[kRow][t] = dot_line(low, high, x, sums[kRow][t]);
        }
      });
#pragma GCC unroll 2
  for (int t = 0; t < T; ++t) {
    float* const out = a.out + static_cast<std::size_t>(t) * kTileRows;
    sum_tree4(sums[0][t], sums[1][t], sums[2][t], sums[3][t], out);
    sum_tree4(sums[4][t], sums[5][t], sums[6][t], sums[7][t], out + 4);
  }
  return good;
}

inline bool few(const PackedGroupArgs& a) { return a.tokens == 1 ? few_tokens<1>(a) : few_tokens<2>(a); }

}  // namespace
}  // namespace sluice::kernels
