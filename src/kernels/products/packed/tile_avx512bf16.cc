// Dot products of pairs (AVX512-BF16): multiplies words and rounded activations directly from memory.
#include "codec/native/native_codes_avx512vbmi2-inl.h"
#include "kernels/kernel_table.h"
#include "kernels/lanes/round_avx512-inl.h"
#include "kernels/lanes/vec_avx512-inl.h"
#include "kernels/products/packed/packed_lines_avx512-inl.h"
#include "kernels/products/packed/tile_impl.h"

namespace sluice::kernels {
namespace {

// Uses 24 sums, 4 rows and 1 activation of the 32 registers; 24 products take 12 cycles, loading their lines
// takes 5. Also for one token: on Zen 5, 4 rows at once are 3 % faster than 8, and prefetching further on is
// slower.
constexpr int kRowsAtOnce = 4;
constexpr std::size_t kMostTokens = 6;

// A tile is one part of up to kMostTokens tokens, or two.
struct Part {
  const std::byte* lines;
  std::size_t tokens;
};
[[gnu::always_inline]] inline Part part(const Activations& a, std::size_t i, std::size_t steps) {
  if (a.tokens <= kMostTokens) return {a.tiles, i == 0 ? a.tokens : 0};
  const std::size_t first = (a.tokens + 1) / 2;
  if (i == 0) return {a.tiles, first};
  return {a.tiles + steps * first * 64, a.tokens - first};
}

void interleave(const std::byte* rows, std::size_t row_bytes, std::size_t tokens, std::size_t steps,
                std::byte* tiles) {
  for (std::size_t i = 0; i < 2; ++i) {
    const std::size_t n = part({tiles, 64, tokens}, i, steps).tokens;
    for (std::size_t s = 0; s < steps; ++s) {
      for (std::size_t t = 0; t < n; ++t, tiles += 64)
        _mm512_storeu_si512(tiles, _mm512_loadu_si512(rows + t * row_bytes + 64 * s));
    }
    rows += n * row_bytes;
  }
}

// With many columns, those of a tile of tokens (6 x 2048 x 2 bytes = 24 KiB) stay in an L1 of 48 KiB while
// the rows of a panel pass by.
constexpr std::size_t kStepBlock = 64;

// R rows by T tokens.
struct DotArgs {
  const std::byte* rows;
  std::size_t row_bytes;
  const std::byte* tokens;  // T lines of 64 bytes in a step
  std::size_t steps;
  bool first, last;  // whether these are the first or last steps; between calls sums are in `state`
  float* state;      // R·T·16
  // Prefetched rows, row_bytes apart: one line of each in each step.
  const std::byte* ahead;
  float* out;
  std::size_t out_stride;
};

[[gnu::always_inline]] inline __m512 dot(__m512 sums, __m512i a, __m512i b) {
  return _mm512_dpbf16_ps(sums, reinterpret_cast<__m512bh>(a), reinterpret_cast<__m512bh>(b));
}

template <int R, int T, int A>
[[gnu::noinline]] void dot_tile(const DotArgs& d) {
  __m512 sums[R][T];
#pragma GCC unroll 16
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 16
    for (int t = 0; t < T; ++t)
      sums[r][t] = d.first ? _mm512_setzero_ps() : _mm512_load_ps(d.state + 16 * (r * T + t));
  }
  const std::byte *w = d.rows, *x = d.tokens, *ahead = d.ahead;
  const std::size_t row_bytes = d.row_bytes;
  for (std::size_t s = d.steps; s > 0; --s) {
#pragma GCC unroll 16
    for (int a = 0; a < A; ++a) __builtin_prefetch(ahead + a * row_bytes, 0, 2);
    __m512i weights[R];
#pragma GCC unroll 16
    for (int r = 0; r < R; ++r) weights[r] = _mm512_loadu_si512(w + r * row_bytes);
#pragma GCC unroll 16
    for (int t = 0; t < T; ++t) {
      const __m512i activation = _mm512_loadu_si512(x + 64 * t);
#pragma GCC unroll 16
      for (int r = 0; r < R; ++r) sums[r][t] = dot(sums[r][t], weights[r], activation);
    }
    w += 64;
    x += 64 * T;
    ahead += 64;
  }
  if (!d.last) {
#pragma GCC unroll 16
    for (int r = 0; r < R; ++r) {
#pragma GCC unroll 16
      for (int t = 0; t < T; ++t) _mm512_store_ps(d.state + 16 * (r * T + t), sums[r][t]);
    }
    return;
  }
#pragma GCC unroll 16
  for (int t = 0; t < T; ++t) {
    float* const out = d.out + static_cast<std::size_t>(t) * d.out_stride;
#pragma GCC unroll 16
    for (int r = 0; r < R; r += 4)
      sum_tree4({sums[r][t]}, {sums[r + 1][t]}, {sums[r + 2][t]}, {sums[r + 3][t]}, out + r);
  }
}

// Multiplies the rows of a panel with one part of T tokens. `ahead`: the rows to prefetch; `each` of them for
// kRowsAtOnce rows: 0, 1 or kRowsAtOnce.
template <int T>
void rows_by_part(const TileArgs& a, const std::byte* tokens, float* out, const std::byte* ahead,
                  std::size_t each) {
  constexpr std::size_t kR = kRowsAtOnce;
  const std::size_t groups = a.row_tiles * kTileWeights / kR;
  alignas(64) float state[2 * kTileWeights / kR][kR * T * 16];
  DotArgs d{};
  d.row_bytes = a.row_bytes;
  d.out_stride = a.out_stride;
  for (std::size_t s = 0; s < a.steps; s += kStepBlock) {
    d.steps = a.steps - s < kStepBlock ? a.steps - s : kStepBlock;
    d.first = s == 0;
    d.last = s + d.steps == a.steps;
    d.tokens = tokens + s * 64 * T;
    for (std::size_t g = 0; g < groups; ++g) {
      d.rows = a.rows + g * kR * a.row_bytes + 64 * s;
      d.state = state[g];
      d.out = out + g * kR;
      d.ahead = ahead + g * each * a.row_bytes + 64 * s;
      if (each == 0) dot_tile<kR, T, 0>(d);
      if (each == 1) dot_tile<kR, T, 1>(d);
      if (each == kR) dot_tile<kR, T, kR>(d);
    }
  }
}

void multiply(const TileArgs& a) {
  const std::size_t groups = a.row_tiles * kTileWeights / kRowsAtOnce;
  // Either the last part prefetches all rows further on, or the first parts prefetch a few each.
  const bool all = a.ahead_rows > 2 * groups;
  const std::byte* ahead = a.ahead;
  std::size_t left = a.ahead_rows / groups;
  float* out = a.out;
  for (std::size_t tile = 0; tile < a.token_tiles; ++tile) {
    for (std::size_t i = 0; i < 2; ++i) {
      const Part p = part(a.activations[tile], i, a.steps);
      const bool last = tile + 1 == a.token_tiles && (i == 1 || a.activations[tile].tokens <= kMostTokens);
      const std::size_t each = all ? (last ? kRowsAtOnce : 0) : left > 0 ? 1 : 0;
      switch (p.tokens) {
        case 0:
          break;
        case 1:
          rows_by_part<1>(a, p.lines, out, ahead, each);
          break;
        case 2:
          rows_by_part<2>(a, p.lines, out, ahead, each);
          break;
        case 3:
          rows_by_part<3>(a, p.lines, out, ahead, each);
          break;
        case 4:
          rows_by_part<4>(a, p.lines, out, ahead, each);
          break;
        case 5:
          rows_by_part<5>(a, p.lines, out, ahead, each);
          break;
        default:
          rows_by_part<6>(a, p.lines, out, ahead, each);
          break;
      }
      out += p.tokens * a.out_stride;
      if (each == 1) {
        ahead += groups * a.row_bytes;
        --left;
      }
    }
  }
}

// Decodes a line, makes words, multiplies and drops it, all in registers.
template <int T>
bool multiply_group(const PackedGroup& group, const std::byte* tokens, float* out) {
  __m512 sums[kTileRows][T];
#pragma GCC unroll 8
  for (auto& row : sums) {
#pragma GCC unroll 2
    for (__m512& sum : row) sum = _mm512_setzero_ps();
  }
  const bool good = for_each_word_line<SomeBlocksOn>(
      group, [&]<int kRow>(std::uint64_t block, codec::TileRow<kRow>, __m512i low, __m512i high)
                 __attribute__((always_inline)) {
#pragma GCC unroll 2
                   for (int t = 0; t < T; ++t) {
                     const std::byte* const x = tokens + (2 * block * T + static_cast<std::size_t>(t)) * 64;
                     sums[kRow][t] = dot(sums[kRow][t], low, _mm512_loadu_si512(x));
                     sums[kRow][t] = dot(sums[kRow][t], high, _mm512_loadu_si512(x + 64 * T));
                   }
                 });
#pragma GCC unroll 2
  for (int t = 0; t < T; ++t) {
#pragma GCC unroll 2
    for (int r = 0; r < 8; r += 4)
      sum_tree4({sums[r][t]}, {sums[r + 1][t]}, {sums[r + 2][t]}, {sums[r + 3][t]},
                out + static_cast<std::size_t>(t) * kTileWeights + r);
  }
  return good;
}

bool multiply_groups(const TileGroupArgs& a) {
  bool good = true;
  for (std::size_t g = 0; g < a.count; ++g) {
    float* const out = a.out + g * kTileRows;
    good = (a.activations.tokens == 1 ? multiply_group<1>(a.groups[g], a.activations.tiles, out)
                                      : multiply_group<2>(a.groups[g], a.activations.tiles, out)) &&
           good;
  }
  return good;
}

bool words(const PackedGroup& group, std::byte* words) {
  const std::size_t row_bytes = 2 * kTileColumns * group.blocks;
  return for_each_word_line<SomeBlocksOn>(
      group, [&]<int kRow>(std::uint64_t block, codec::TileRow<kRow>, __m512i low, __m512i high)
                 __attribute__((always_inline)) {
                   std::byte* const to = words + kRow * row_bytes + 2 * kTileColumns * block;
                   _mm512_store_si512(to, low);
                   _mm512_store_si512(to + 64, high);
                 });
}

}  // namespace

// With blocks of 4 MiB, packed weights are decoded once for a thousand tokens of 2048 columns; 0.5 MiB (L2)
// is 5 % slower for them, and makes no difference for words.
constinit const TileKernels kPairsAvx512Bf16 = {.tile_tokens = 2 * kMostTokens,
                                                .group_tokens = 2,
                                                .groups = 1,
                                                .ahead_tokens = kMostTokens + 1,
                                                .ahead_rows = 2 * kTileWeights / kRowsAtOnce,
                                                .block_bytes = std::size_t{1} << 22,
                                                .round = round,
                                                .interleave = interleave,
                                                .begin = [](std::size_t) {},
                                                .end = [] {},
                                                .multiply = multiply,
                                                .multiply_groups = multiply_groups,
                                                .words = words};

}  // namespace sluice::kernels
