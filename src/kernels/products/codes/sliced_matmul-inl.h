// sliced_matmul.h over the Vec and the CodeLine of an instruction set (sliced_codes-inl.h).
#pragma once

#include "kernels/products/codes/sliced_codes-inl.h"

namespace sluice::kernels {
namespace {

// Groups of a strip as unpack() leaves them: one byte per code, and the rest in floats. 16 groups (10 KiB)
// and their columns of a tile of tokens (12 KiB) stay in an L1 of 32 KiB.
inline constexpr std::size_t kBlockGroups = 16;
struct alignas(64) UnpackedBlock {
  std::byte codes[kBlockGroups * kCellBytes];
  float scales[kBlockGroups * kStripRows], zero_points[kBlockGroups * kStripRows];
};

template <bool kIsWide>
struct Unpacked {
  static constexpr bool kWide = kIsWide;
  static constexpr unsigned kMask = 0xff;
  const std::byte* lines;
  [[gnu::always_inline]] QuadPair pair(unsigned p) const {
    return {{load_line(lines + kLineBytes * 2 * p), load_line(lines + kLineBytes * (2 * p + 1))}};
  }
};

template <class Codes>
inline void unpack(Codes codes, std::size_t groups, UnpackedBlock& block) {
  for (std::size_t g = 0; g < groups; ++g, codes.next()) {
#pragma GCC unroll 4
    for (unsigned p = 0; p < kPairs; ++p) {
      const QuadPair pair = codes.pair(p);
      std::byte* const lines = block.codes + kCellBytes * g + kLineBytes * 2 * p;
      store_line(lines, keep_bits(pair.quads[0], in_all_bytes(Codes::kMask)));
      store_line(lines + kLineBytes, keep_bits(pair.quads[1], in_all_bytes(Codes::kMask)));
    }
    store(block.scales + kStripRows * g, codes.scale());
    store(block.zero_points + kStripRows * g, codes.zero_points());
  }
}

// Column 4q + k, times 2^8k (wide codes of k = 3: unchanged).
template <class Codes>
[[gnu::always_inline]] inline Vec column(CodeLine quad, unsigned k) {
  if (Codes::kWide && k == 3) return to_floats(shift_right(quad, 24));
  return to_floats(keep_bits(quad, Codes::kMask << 8 * k));
}

// Chains kFirst … kFirst+K−1 of a cell and T tokens.
template <int kFirst, int K, int T, class Codes>
[[gnu::always_inline]] inline void chains(const Codes& codes, const float* x, std::size_t x_stride,
                                          Vec (&acc)[K][T]) {
#pragma GCC unroll 16
  for (int k = 0; k < K; ++k) {
#pragma GCC unroll 16
    for (int t = 0; t < T; ++t) acc[k][t] = zero();
  }
#pragma GCC unroll 4
  for (unsigned p = 0; p < kPairs; ++p) {
    const QuadPair pair = codes.pair(p);
#pragma GCC unroll 2
    for (unsigned h = 0; h < 2; ++h) {
      // Few accumulators leave room; otherwise the compiler would compute it again for every column.
      const CodeLine quad = K * T <= 4 ? in_registers(pair.quads[h]) : pair.quads[h];
#pragma GCC unroll 16
      for (int k = 0; k < K; ++k) {
        const Vec weight = column<Codes>(quad, kFirst + k);
        const float* const at = x + 16 * h + 4 * p + kFirst + k;
#pragma GCC unroll 16
        for (int t = 0; t < T; ++t) acc[k][t] = fma(weight, set1(at[t * x_stride]), acc[k][t]);
      }
    }
  }
}

// Chain 2 + chain 3.
template <class Codes>
[[gnu::always_inline]] inline Vec last_pair(Vec chain2, Vec chain3) {
  return Codes::kWide ? fma(chain3, set1(kWideFactor), chain2) : add(chain2, chain3);
}

// The sum of a group before its zero point: as many chains at once as fit in registers.
template <int T, class Codes>
[[gnu::always_inline]] inline void sum_cell(const Codes& codes, const float* x, std::size_t x_stride,
                                            Vec (&sum)[T]) {
  if constexpr (4 * T <= kSlicedVecs) {
    Vec acc[4][T];
    chains<0>(codes, x, x_stride, acc);
#pragma GCC unroll 16
    for (int t = 0; t < T; ++t)
      sum[t] = add(add(acc[0][t], acc[1][t]), last_pair<Codes>(acc[2][t], acc[3][t]));
  } else if constexpr (2 * T <= kSlicedVecs) {
    Vec acc[2][T];
    chains<0>(codes, x, x_stride, acc);
#pragma GCC unroll 16
    for (int t = 0; t < T; ++t) sum[t] = add(acc[0][t], acc[1][t]);
    chains<2>(codes, x, x_stride, acc);
#pragma GCC unroll 16
    for (int t = 0; t < T; ++t) sum[t] = add(sum[t], last_pair<Codes>(acc[0][t], acc[1][t]));
  } else {
    Vec acc[1][T], third[T];
    chains<0>(codes, x, x_stride, acc);
#pragma GCC unroll 16
    for (int t = 0; t < T; ++t) sum[t] = acc[0][t];
    chains<1>(codes, x, x_stride, acc);
#pragma GCC unroll 16
    for (int t = 0; t < T; ++t) sum[t] = add(sum[t], acc[0][t]);
    chains<2>(codes, x, x_stride, acc);
#pragma GCC unroll 16
    for (int t = 0; t < T; ++t) third[t] = acc[0][t];
    chains<3>(codes, x, x_stride, acc);
#pragma GCC unroll 16
    for (int t = 0; t < T; ++t) sum[t] = add(sum[t], last_pair<Codes>(third[t], acc[0][t]));
  }
}

// One token: codes go from memory into registers and are dropped.
template <class Codes>
inline void one_token(const ProductArgs& a, std::size_t strip_begin, std::size_t strip_end) {
  const float* const minus_sums = a.x + kCellColumns * groups_of(a);
  Codes codes(a, strip_begin * groups_of(a));
  for (std::size_t strip = strip_begin; strip < strip_end; ++strip) {
    Vec total = zero();
    for (std::size_t g = 0; g < groups_of(a); ++g, codes.next()) {
      codes.ask_ahead();
      Vec sum[1];
      sum_cell<1>(codes, a.x + kCellColumns * g, 0, sum);
      total = fma(codes.scale(), fma(codes.zero_points(), set1(minus_sums[g]), sum[0]), total);
    }
    finish<Codes>(a, strip, 0, total);
  }
}

// At most this many tokens at once: their activations stay in L2.
inline constexpr std::size_t kTokensAtOnce = 96;

struct SlicedTile {
  const UnpackedBlock* block;
  std::size_t groups;  // in the block
  const float* x;      // activations of the first token and group
  const float* minus_sums;
  std::size_t x_stride;  // for both arrays
  float* totals;         // (T, 16)
};

template <bool kWide, int T>
[[gnu::noinline]] void sliced_tile(const SlicedTile& d) {
  for (std::size_t g = 0; g < d.groups; ++g) {
    Vec sum[T];
    sum_cell<T>(Unpacked<kWide>{d.block->codes + kCellBytes * g}, d.x + kCellColumns * g, d.x_stride, sum);
    const Vec scale = load(d.block->scales + kStripRows * g);
    const Vec zero_points = load(d.block->zero_points + kStripRows * g);
#pragma GCC unroll 16
    for (int t = 0; t < T; ++t) {
      float* const total = d.totals + kStripRows * t;
      store(total, fma(scale, fma(zero_points, set1(d.minus_sums[t * d.x_stride + g]), sum[t]), load(total)));
    }
  }
}

// The tile of `tokens` ≤ T tokens.
template <bool kWide, int T>
inline void sliced_tokens(std::size_t tokens, const SlicedTile& d) {
  if constexpr (T > 1) {
    if (tokens < T) return sliced_tokens<kWide, T - 1>(tokens, d);
  }
  sliced_tile<kWide, T>(d);
}

// One strip with at most kTokensAtOnce tokens.
template <class Codes>
inline void some_tokens(const ProductArgs& a, std::size_t strip, std::size_t token_begin,
                        std::size_t token_end) {
  UnpackedBlock block;
  alignas(64) float totals[kTokensAtOnce * kStripRows];
  for (std::size_t i = 0; i < (token_end - token_begin) * kStripRows; ++i) totals[i] = 0.0f;
  const std::size_t tiles = (token_end - token_begin + kTokens - 1) / kTokens;
  for (std::size_t g = 0; g < groups_of(a); g += kBlockGroups) {
    SlicedTile tile{};
    tile.block = &block;
    tile.groups = groups_of(a) - g < kBlockGroups ? groups_of(a) - g : kBlockGroups;
    tile.x_stride = a.x_stride;
    unpack(Codes(a, strip * groups_of(a) + g), tile.groups, block);
    std::size_t t = token_begin;
    for (std::size_t i = 0; i < tiles; ++i) {  // sizes differ by one at most
      const std::size_t n = (token_end - t + (tiles - i) - 1) / (tiles - i);
      tile.x = a.x + t * a.x_stride + g * kCellColumns;
      tile.minus_sums = a.x + t * a.x_stride + groups_of(a) * kCellColumns + g;
      tile.totals = totals + (t - token_begin) * kStripRows;
      sliced_tokens<Codes::kWide, kTokens>(n, tile);
      t += n;
    }
  }
  for (std::size_t t = token_begin; t < token_end; ++t)
    finish<Codes>(a, strip, t, load(totals + (t - token_begin) * kStripRows));
}

template <class Codes>
inline void strips_of(const ProductArgs& a, std::size_t strip_begin, std::size_t strip_end) {
  if (a.tokens == 1) return one_token<Codes>(a, strip_begin, strip_end);
  for (std::size_t t = 0; t < a.tokens; t += kTokensAtOnce) {
    const std::size_t end = a.tokens - t < kTokensAtOnce ? a.tokens : t + kTokensAtOnce;
    for (std::size_t strip = strip_begin; strip < strip_end; ++strip) some_tokens<Codes>(a, strip, t, end);
  }
}

template <unsigned kMsb, unsigned kLsb>
inline void strips_of_bits(const ProductArgs& a, std::size_t strip_begin, std::size_t strip_end) {
  if (a.view == SliceView::kHigh)
    return strips_of<Stored<kMsb, kLsb, SliceView::kHigh>>(a, strip_begin, strip_end);
  if (a.view == SliceView::kLow)
    return strips_of<Stored<kMsb, kLsb, SliceView::kLow>>(a, strip_begin, strip_end);
  strips_of<Stored<kMsb, kLsb, SliceView::kCenter>>(a, strip_begin, strip_end);
}

template <unsigned kMsb, unsigned kLsb>
void sliced_rows(const ProductArgs& a, std::size_t begin, std::size_t end) {
  strips_of_bits<kMsb, kLsb>(a, begin / kStripRows, (end + kStripRows - 1) / kStripRows);
}

constexpr SlicedKernels kSliced = {{sliced_rows<4, 4>, sliced_rows<3, 3>, sliced_rows<2, 2>}};

}  // namespace
}  // namespace sluice::kernels
