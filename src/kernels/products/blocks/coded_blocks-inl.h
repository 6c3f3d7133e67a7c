// Products of blocks of codes with activations in codes, in the order of sums of coded_blocks.h, over the
// lanes of an instruction set.
#pragma once

#include "kernels/products/blocks/coded_block_codes-inl.h"

namespace sluice::kernels {
namespace {

inline constexpr unsigned kGroups = kStripGroups;

// S of the groups of a strip as floats, from sums of codes that kZero was not subtracted from yet.
template <class Format>
[[gnu::always_inline]] inline Float8 less_zeros(Whole8 sums, Float8 minus_sums) {
  if constexpr (Format::kZero == 0)
    return floats_of(sums);
  else
    return times_plus(all_equal(static_cast<float>(Format::kZero)), minus_sums, floats_of(sums));
}
template <class Format>
[[gnu::always_inline]] inline Float8 less_weighed_zeros(Whole8 sums, Whole8 minus_halves_by_scales) {
  if constexpr (Format::kZero == 0)
    return floats_of(sums);
  else
    return floats_of(plus(sums, times(minus_halves_by_scales, Format::kZero)));
}

template <class Format>
[[gnu::always_inline]] inline Whole8 group_products(const std::byte* p, unsigned h, const std::byte* x) {
  if constexpr (Format::kMost == 0)
    return signed_products(Format::codes(p, h), x);
  else
    return products<Format::kMost>(Format::codes(p, h), x);
}

// Where a strip of weights is, and its activations.
struct StripAt {
  const std::byte *blocks, *others;
  const BlockCodes<const float>& x;
  std::size_t strip;
};

// One row's n groups of a strip, with one token.
template <class Format, bool kWhole>
[[gnu::always_inline]] inline Float8 add_strip(const StripAt& at, unsigned n, Float8 totals) {
  const std::byte* const p = at.blocks;
  const std::size_t first = at.strip * kGroups;
  const std::byte* const codes = at.x.codes + first * kGroupColumns;
  Whole8 sums[kGroups];
  if constexpr (kWhole) {
#pragma GCC unroll 8
    for (unsigned h = 0; h < kGroups; ++h) sums[h] = group_products<Format>(p, h, codes + h * kGroupColumns);
  } else {
    for (unsigned h = 0; h < kGroups; ++h)
      sums[h] = h < n ? group_products<Format>(p, h, codes + h * kGroupColumns) : no_whole();
  }
  const unsigned groups = kWhole ? kGroups : n;
  const Float8 scale = load_floats(at.x.scales + first), minus_sums = load_floats(at.x.minus_sums + first);
  const std::byte* const minus_halves = at.x.minus_halves + 4 * first;
  Float8 sum;
  if constexpr (Format::kHalves) {
    const Scales16 scales = Format::half_scales(p);
    sum = less_weighed_zeros<Format>(weighed_sums(sums, scales), halves_by(scales, minus_halves));
  } else {
    sum = less_zeros<Format>(sums_of_eight(sums), minus_sums);
  }
  totals = times_plus(Format::scales(p, at.others, groups), times(scale, sum), totals);
  if constexpr (Format::kMinima) {
    Float8 minima = minus_sums;
    if constexpr (Format::kHalves) minima = floats_of(halves_by(Format::half_minima(p), minus_halves));
    totals = times_plus(Format::minima(p, groups), times(scale, minima), totals);
  }
  return totals;
}

// The strips of a row.
template <class Format>
struct CodedRow {
  static constexpr std::size_t kBlocks = kStripColumns / Format::kColumns;  // blocks of a strip
  static constexpr std::size_t kStripBytes = kBlocks * Format::kBytes;
  const std::byte *blocks, *others = nullptr;  // in both planes
  CodedRow(const ProductArgs& a, std::size_t row)
      : blocks(a.planes[0] + row * (a.columns / Format::kColumns * Format::kBytes)) {
    if constexpr (Format::kOtherBytes != 0)
      others = a.planes[1] + row * (a.columns / Format::kColumns * Format::kOtherBytes);
  }
  [[gnu::always_inline]] const std::byte* strip(std::size_t i) const { return blocks + i * kStripBytes; }
  [[gnu::always_inline]] const std::byte* other(std::size_t i) const {
    return others + i * kBlocks * Format::kOtherBytes;
  }
};

[[gnu::always_inline]] inline void put(const ProductArgs& a, std::size_t row, std::size_t token,
                                       float total) {
  a.y[token * a.y_stride + row] = a.bias == nullptr ? total : total + a.bias[row];
}

// With one token, this many parts of the rows are read by turns: memory gives more to several streams than to
// one (one thread of a Zen 3 that others used, too: 18 and 9 GB/s of q8_0; four neighbouring rows by turns
// had 6 to 10, as short rows are no streams).
inline constexpr std::size_t kCodedParts = 4;
// So far ahead in each of them is prefetched.
inline constexpr std::size_t kCodedAhead = 512;

// Rows row, row + step …, `rows` of them, at most kCodedParts, with one token.
template <class Format>
[[gnu::noinline]] void coded_rows(const ProductArgs& a, std::size_t row, std::size_t step, std::size_t rows,
                                  std::size_t token) {
  const CodedRow<Format> w(a, row);
  const BlockCodes<const float> x(a.x + token * a.x_stride, a.columns);
  const std::size_t blocks = step * (a.columns / Format::kColumns), strips = a.columns / kStripColumns;
  const std::size_t next = blocks * Format::kBytes, other_next = blocks * Format::kOtherBytes;
  Float8 totals[kCodedParts];
  for (std::size_t r = 0; r < rows; ++r) totals[r] = no_floats();
  for (std::size_t s = 0; s < strips; ++s) {
    for (std::size_t r = 0; r < rows; ++r) {
      const std::byte* const p = w.strip(s) + r * next;
#pragma GCC unroll 8
      for (std::size_t line = 0; line < CodedRow<Format>::kStripBytes; line += 64)
        __builtin_prefetch(p + kCodedAhead + line, 0, 2);
      totals[r] = add_strip<Format, true>({p, w.other(s) + r * other_next, x, s}, kGroups, totals[r]);
    }
  }
  if constexpr (CodedRow<Format>::kBlocks > 1) {
    const auto rest = static_cast<unsigned>(a.columns % kStripColumns / kGroupColumns);
    for (std::size_t r = 0; rest != 0 && r < rows; ++r) {
      const StripAt last = {w.strip(strips) + r * next, w.other(strips) + r * other_next, x, strips};
      totals[r] = add_strip<Format, false>(last, rest, totals[r]);
    }
  }
  for (std::size_t r = 0; r < rows; ++r) put(a, row + r * step, token, sum_of_lanes(totals[r]));
}

// With several tokens, a strip of eight rows lies in the L1 cache, a row in each lane, while the tokens pass
// by.
inline constexpr unsigned kLanes = 8, kQuads = kGroupColumns / 4;
inline constexpr std::size_t kCodedTokens = 48;    // at once, whose totals of these rows lie there, too
inline constexpr std::size_t kFewCodedTokens = 3;  // for no more, rows are taken as with one

struct alignas(64) CodedTile {
  std::int32_t codes[kGroups][kQuads][kLanes];                                // four codes
  std::int32_t sizes[kGroups][kQuads][kLanes];                                // |codes| of signed ones
  std::int32_t scale_pairs[kGroups][kLanes], minimum_pairs[kGroups][kLanes];  // for both halves
  float scales[kGroups][kLanes], minima[kGroups][kLanes];
  float totals[kCodedTokens][kGroups][kLanes];
};

// The same, row after row.
struct alignas(64) CodedRows {
  std::int32_t codes[kLanes][kGroups][kQuads];
  std::int32_t scale_pairs[kLanes][kGroups], minimum_pairs[kLanes][kGroups];
  float scales[kLanes][kGroups], minima[kLanes][kGroups];
};

template <class Format>
inline void fill_row(const StripAt& at, unsigned n, unsigned r, CodedRows& rows) {
  for (unsigned h = 0; h < n; ++h) store_codes(rows.codes[r][h], Format::codes(at.blocks, h));
  store_floats(rows.scales[r], Format::scales(at.blocks, at.others, n));
  if constexpr (Format::kMinima) store_floats(rows.minima[r], Format::minima(at.blocks, n));
  if constexpr (Format::kHalves) {
    store_whole(rows.scale_pairs[r], pairs_of(Format::half_scales(at.blocks)));
    if constexpr (Format::kMinima)
      store_whole(rows.minimum_pairs[r], pairs_of(Format::half_minima(at.blocks)));
  }
}

template <class Format>
inline void turn_rows(const CodedRows& rows, unsigned n, CodedTile& tile) {
  for (unsigned h = 0; h < n; ++h) {
    transpose_words(rows.codes[0][h], sizeof(rows.codes[0]), tile.codes[h], sizeof(tile.codes[h][0]));
    if constexpr (Format::kMost == 0) {
      for (unsigned q = 0; q < kQuads; ++q) store_sizes(tile.codes[h][q], tile.sizes[h][q]);
    }
  }
  const auto turn = [](const auto& from, auto& to) {
    transpose_words(from[0], sizeof(from[0]), to[0], sizeof(to[0]));
  };
  turn(rows.scales, tile.scales);
  if constexpr (Format::kMinima) turn(rows.minima, tile.minima);
  if constexpr (Format::kHalves) {
    turn(rows.scale_pairs, tile.scale_pairs);
    if constexpr (Format::kMinima) turn(rows.minimum_pairs, tile.minimum_pairs);
  }
}

// Sums of quads [kFirst, kFirst + kCount) of a group for T tokens.
template <class Format, unsigned kFirst, unsigned kCount, int T>
[[gnu::always_inline]] inline void quad_sums(const CodedTile& tile, unsigned h,
                                             const std::byte* const (&x)[T], Whole8 (&sums)[T]) {
  constexpr bool kSigned = Format::kMost == 0;
  constexpr unsigned kIn16 = kPairsIn16 < kSigned ? 128 : Format::kMost > ;
  constexpr unsigned kChain = kIn16 < kCount ? kIn16 : kCount;
#pragma GCC unroll 8
  for (unsigned begin = kFirst; begin < kFirst + kCount; begin += kChain) {
    const unsigned end = begin + kChain < kFirst + kCount ? begin + kChain : kFirst + kCount;
    PairSums pairs[T];
#pragma GCC unroll 8
    for (unsigned q = begin; q < end; ++q) {
      const CodeBytes w = load_codes(tile.codes[h][q]), size = kSigned ? load_codes(tile.sizes[h][q]) : w;
#pragma GCC unroll 8
      for (int t = 0; t < T; ++t) {
        const PairSums some = pair_products<kSigned>(w, size, four_codes(x[t] + h * kGroupColumns + 4 * q));
        pairs[t] = q == begin ? some : add_pairs(pairs[t], some);
      }
    }
#pragma GCC unroll 8
    for (int t = 0; t < T; ++t)
      sums[t] = begin == kFirst ? widened(pairs[t]) : plus(sums[t], widened(pairs[t]));
  }
}

// Adds n groups of the tile's strip to the totals of T tokens, from `token` of the tile on.
template <class Format, int T>
[[gnu::noinline]] void add_tile_strip(CodedTile& tile, const BlockCodes<const float>* x, std::size_t strip,
                                      unsigned n, std::size_t token) {
  const std::byte* codes[T];
#pragma GCC unroll 8
  for (int t = 0; t < T; ++t) codes[t] = x[t].codes + strip * kStripColumns;
  for (unsigned h = 0; h < n; ++h) {
    const std::size_t group = strip * kGroups + h;
    Whole8 sums[T];
    [[maybe_unused]] Whole8 scale_pairs;
    if constexpr (Format::kHalves) {
      scale_pairs = load_whole8(tile.scale_pairs[h]);
      const Whole8 first = first_of_pairs(scale_pairs), second = second_of_pairs(scale_pairs);
      Whole8 more[T];
      quad_sums<Format, 0, kQuads / 2, T>(tile, h, codes, sums);
      quad_sums<Format, kQuads / 2, kQuads / 2, T>(tile, h, codes, more);
#pragma GCC unroll 8
      for (int t = 0; t < T; ++t) sums[t] = plus(times(sums[t], first), times(more[t], second));
    } else {
      quad_sums<Format, 0, kQuads, T>(tile, h, codes, sums);
    }
    const Float8 a = load_floats(tile.scales[h]);
#pragma GCC unroll 8
    for (int t = 0; t < T; ++t) {
      const Float8 scale = all_equal(x[t].scales[group]);
      const auto minus_halves = four_codes(x[t].minus_halves + 4 * group);
      Float8 sum;
      if constexpr (Format::kHalves)
        sum = less_weighed_zeros<Format>(sums[t], pairs_by(scale_pairs, minus_halves));
      else
        sum = less_zeros<Format>(sums[t], all_equal(x[t].minus_sums[group]));
      Float8 totals = times_plus(a, times(scale, sum), load_floats(tile.totals[token + t][h]));
      if constexpr (Format::kMinima) {
        Float8 minima = all_equal(x[t].minus_sums[group]);
        if constexpr (Format::kHalves)
          minima = floats_of(pairs_by(load_whole8(tile.minimum_pairs[h]), minus_halves));
        totals = times_plus(load_floats(tile.minima[h]), times(scale, minima), totals);
      }
      store_floats(tile.totals[token + t][h], totals);
    }
  }
}

template <class Format, int T>
inline void add_some_tokens(CodedTile& tile, const BlockCodes<const float>* x, std::size_t strip, unsigned n,
                            std::size_t token, std::size_t tokens) {
  for (; tokens >= T; token += T, tokens -= T) add_tile_strip<Format, T>(tile, x + token, strip, n, token);
  if constexpr (T > 1) add_some_tokens<Format, T / 2>(tile, x, strip, n, token, tokens);
}

// What the last groups, made eight, add.
[[gnu::always_inline]] inline void add_nothing(float* totals) {
  store_floats(totals, times_plus(no_floats(), no_floats(), load_floats(totals)));
}

// Eight rows at most and kCodedTokens tokens at most.
template <class Format>
inline void coded_tile(const ProductArgs& a, std::size_t row, std::size_t rows, std::size_t first,
                       std::size_t tokens, const BlockCodes<const float>* x, CodedRows& buffer,
                       CodedTile& tile) {
  for (std::size_t t = 0; t < tokens; ++t) {
    for (unsigned h = 0; h < kGroups; ++h) store_floats(tile.totals[t][h], no_floats());
  }
  for (std::size_t s = 0; s * kStripColumns < a.columns; ++s) {
    const std::size_t left = (a.columns - s * kStripColumns) / kGroupColumns;
    const unsigned n = left < kGroups ? static_cast<unsigned>(left) : kGroups;
    for (unsigned r = 0; r < kLanes; ++r) {  // behind the last row: it again
      const CodedRow<Format> w(a, row + (r < rows ? r : rows - 1));
      fill_row<Format>({w.strip(s), w.other(s), *x, s}, n, r, buffer);
    }
    turn_rows<Format>(buffer, n, tile);
    add_some_tokens<Format, kTileCodedTokens>(tile, x, s, n, 0, tokens);
    for (std::size_t t = 0; t < tokens; ++t) {
      for (unsigned h = n; h < kGroups; ++h) add_nothing(tile.totals[t][h]);
    }
  }
  for (std::size_t t = 0; t < tokens; ++t) {
    const float(&totals)[kGroups][kLanes] = tile.totals[t];
    for (unsigned r = 0; r < rows; ++r) {
      const float by4[4] = {totals[0][r] + totals[4][r], totals[1][r] + totals[5][r],
                            totals[2][r] + totals[6][r], totals[3][r] + totals[7][r]};
      put(a, row + r, first + t, (by4[0] + by4[2]) + (by4[1] + by4[3]));
    }
  }
}

template <class Format>
void coded_block_rows(const ProductArgs& a, std::size_t begin, std::size_t end) {
  if (a.tokens <= kFewCodedTokens) {
    const std::size_t part = (end - begin) / kCodedParts;
    for (std::size_t i = 0; i < part; ++i) {
      for (std::size_t t = 0; t < a.tokens; ++t) coded_rows<Format>(a, begin + i, part, kCodedParts, t);
    }
    for (std::size_t row = begin + part * kCodedParts; row < end; ++row) {
      for (std::size_t t = 0; t < a.tokens; ++t) coded_rows<Format>(a, row, 1, 1, t);
    }
    return;
  }
  CodedTile tile;
  CodedRows buffer;
  for (std::size_t t = 0; t < a.tokens; t += kCodedTokens) {
    const std::size_t tokens = a.tokens - t < kCodedTokens ? a.tokens - t : kCodedTokens;
    BlockCodes<const float> x[kCodedTokens];
    for (std::size_t i = 0; i < tokens; ++i) x[i] = {a.x + (t + i) * a.x_stride, a.columns};
    for (std::size_t row = begin; row < end; row += kLanes)
      coded_tile<Format>(a, row, end - row < kLanes ? end - row : kLanes, t, tokens, x, buffer, tile);
  }
}

constexpr CodedBlockKernels kCodedBlocks = {
    {coded_block_rows<CodedQ40>, coded_block_rows<CodedQ41>, coded_block_rows<CodedQ50>,
     coded_block_rows<CodedQ51>, coded_block_rows<CodedQ80>, coded_block_rows<CodedQ2K>,
     coded_block_rows<CodedQ3K>, coded_block_rows<CodedQ4K>, coded_block_rows<CodedQ5K>,
     coded_block_rows<CodedQ6K>, coded_block_rows<CodedIq4Nl>, coded_block_rows<CodedIq4Xs>,
     coded_block_rows<CodedMxfp4>, coded_block_rows<CodedMxfp4Pair>}};

}  // namespace
}  // namespace sluice::kernels
