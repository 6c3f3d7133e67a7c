// Products of blocks of codes with activations in codes, in the order of sums of coded_blocks.h, over the
// lanes of an instruction set.
#pragma once

#include "kernels/products/blocks/coded_block_codes-inl.h"

namespace sluice::kernels {
namespace {

inline constexpr unsigned kGroups = kStripGroups;

template <class Format>
inline constexpr bool kSigned = Format::kMost == 0;
// What products were made of is so much more than the codes. Sums of them are below 2^24, too:
// 32·255·127 = 1036320.
template <class Format>
inline constexpr int kZeroOf = kSigned<Format> ? kSignedZero : Format::kZero;

// S of the groups of a strip, or of a group of the rows of a tile, as floats.
template <class Format, class Whole, class Floats>
[[gnu::always_inline]] inline Floats less_zeros(Whole sums, Floats minus_sums) {
  if constexpr (kZeroOf<Format> == 0)
    return floats_of(sums);
  else
    return times_plus(minus_sums, static_cast<float>(kZeroOf<Format>), floats_of(sums));
}
template <class Format, class Whole>
[[gnu::always_inline]] inline auto less_weighed_zeros(Whole sums, Whole minus_halves_by_scales) {
  static_assert(!kSigned<Format>);
  if constexpr (Format::kZero == 0)
    return floats_of(sums);
  else
    return floats_of(plus(sums, times(minus_halves_by_scales, Format::kZero)));
}

template <class Format>
[[gnu::always_inline]] inline Whole8 group_products(const std::byte* p, unsigned h, const std::byte* x) {
  if constexpr (kSigned<Format>)
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
  static constexpr std::size_t kBlocks = kStripColumns / Format::kColumns;  // of a strip
  static constexpr std::size_t kStripBytes = kBlocks * Format::kBytes;
  const std::byte *blocks, *others = nullptr;  // of both planes
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

// With several tokens, a strip of kLanes rows lies in the L1 cache, a row in each lane, while the tokens pass
// by.
inline constexpr unsigned kQuads = kGroupColumns / 4;
inline constexpr std::size_t kFewCodedTokens = 3;  // for no more, rows are taken as with one

struct alignas(64) CodedTile {
  std::int32_t codes[kGroups][kQuads][kLanes];                                // four codes
  std::int32_t sizes[kSizesApart ? kGroups : 1][kQuads][kLanes];              // |codes| of signed ones
  std::int32_t scale_pairs[kGroups][kLanes], minimum_pairs[kGroups][kLanes];  // of both halves
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
  for (unsigned h = 0; h < n; ++h) {
    const CodeBytes codes = Format::codes(at.blocks, h);
    store_codes(rows.codes[r][h], kSigned<Format> ? signed_factors(codes) : codes);
  }
  store_floats(rows.scales[r], Format::scales(at.blocks, at.others, n));
  if constexpr (Format::kMinima) store_floats(rows.minima[r], Format::minima(at.blocks, n));
  if constexpr (Format::kHalves) {
    store_whole(rows.scale_pairs[r], pairs_of(Format::half_scales(at.blocks)));
    if constexpr (Format::kMinima)
      store_whole(rows.minimum_pairs[r], pairs_of(Format::half_minima(at.blocks)));
  }
}

// Rows of eight words become columns.
template <class From, class To>
[[gnu::always_inline]] inline void turn(const From* from, std::size_t from_bytes, To (&to)[8][kLanes]) {
  static_assert(kLanes % 8 == 0);
#pragma GCC unroll 2
  for (unsigned r = 0; r < kLanes; r += 8)
    transpose_words(reinterpret_cast<const std::byte*>(from) + r * from_bytes, from_bytes, &to[0][r],
                    sizeof(to[0]));
}

template <class Format>
inline void turn_rows(const CodedRows& rows, unsigned n, CodedTile& tile) {
  for (unsigned h = 0; h < n; ++h) {
    turn(rows.codes[0][h], sizeof(rows.codes[0]), tile.codes[h]);
    if constexpr (kSigned<Format> && kSizesApart) {
      for (unsigned q = 0; q < kQuads; ++q) store_sizes(tile.codes[h][q], tile.sizes[h][q]);
    }
  }
  turn(rows.scales[0], sizeof(rows.scales[0]), tile.scales);
  if constexpr (Format::kMinima) turn(rows.minima[0], sizeof(rows.minima[0]), tile.minima);
  if constexpr (Format::kHalves) {
    turn(rows.scale_pairs[0], sizeof(rows.scale_pairs[0]), tile.scale_pairs);
    if constexpr (Format::kMinima)
      turn(rows.minimum_pairs[0], sizeof(rows.minimum_pairs[0]), tile.minimum_pairs);
  }
}

// Sums of quads [kFirst, kFirst + kCount) of a group for T tokens.
template <class Format, unsigned kFirst, unsigned kCount, int T>
[[gnu::always_inline]] inline void quad_sums(const CodedTile& tile, unsigned h,
                                             const std::byte* const (&x)[T], TileWhole (&sums)[T]) {
  constexpr bool kSizes = kSigned<Format> && kSizesApart;
  constexpr unsigned kChain = kPairsIn16<Format::kMost> < kCount ? kPairsIn16<Format::kMost> : kCount;
#pragma GCC unroll 8
  for (unsigned begin = kFirst; begin < kFirst + kCount; begin += kChain) {
    const unsigned end = begin + kChain < kFirst + kCount ? begin + kChain : kFirst + kCount;
    QuadSums quads[T];
#pragma GCC unroll 8
    for (unsigned q = begin; q < end; ++q) {
      const TileCodes w = tile_codes(tile.codes[h][q]), size = kSizes ? tile_codes(tile.sizes[h][q]) : w;
#pragma GCC unroll 8
      for (int t = 0; t < T; ++t) {
        const Repeated some = four_bytes(x[t] + h * kGroupColumns + 4 * q);
        quads[t] = q == begin ? quad_products<kSigned<Format>>(w, size, some)
                              : add_quad<kSigned<Format>>(quads[t], w, size, some);
      }
    }
#pragma GCC unroll 8
    for (int t = 0; t < T; ++t)
      sums[t] = begin == kFirst ? whole_of(quads[t]) : plus(sums[t], whole_of(quads[t]));
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
    TileWhole sums[T];
    [[maybe_unused]] TileWhole scale_pairs;
    if constexpr (Format::kHalves) {
      scale_pairs = tile_whole(tile.scale_pairs[h]);
      const TileWhole first = first_of_pairs(scale_pairs), second = second_of_pairs(scale_pairs);
      TileWhole more[T];
      quad_sums<Format, 0, kQuads / 2, T>(tile, h, codes, sums);
      quad_sums<Format, kQuads / 2, kQuads / 2, T>(tile, h, codes, more);
#pragma GCC unroll 8
      for (int t = 0; t < T; ++t) sums[t] = plus(times(sums[t], first), times(more[t], second));
    } else {
      quad_sums<Format, 0, kQuads, T>(tile, h, codes, sums);
    }
    const TileFloats a = tile_floats(tile.scales[h]);
#pragma GCC unroll 8
    for (int t = 0; t < T; ++t) {
      const TileFloats scale = tile_equal(x[t].scales[group]);
      const auto minus_halves = four_bytes(x[t].minus_halves + 4 * group);
      TileFloats sum;
      if constexpr (Format::kHalves)
        sum = less_weighed_zeros<Format>(sums[t], pairs_by(scale_pairs, minus_halves));
      else
        sum = less_zeros<Format>(sums[t], tile_equal(x[t].minus_sums[group]));
      TileFloats totals = times_plus(a, times(scale, sum), tile_floats(tile.totals[token + t][h]));
      if constexpr (Format::kMinima) {
        TileFloats minima = tile_equal(x[t].minus_sums[group]);
        if constexpr (Format::kHalves)
          minima = floats_of(pairs_by(tile_whole(tile.minimum_pairs[h]), minus_halves));
        totals = times_plus(tile_floats(tile.minima[h]), times(scale, minima), totals);
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
  store_floats(totals, times_plus(tile_equal(0), tile_equal(0), tile_floats(totals)));
}

// kLanes rows at most and kCodedTokens tokens at most.
template <class Format>
inline void coded_tile(const ProductArgs& a, std::size_t row, std::size_t rows, std::size_t first,
                       std::size_t tokens, const BlockCodes<const float>* x, CodedRows& buffer,
                       CodedTile& tile) {
  for (std::size_t t = 0; t < tokens; ++t) {
    for (unsigned h = 0; h < kGroups; ++h) store_floats(tile.totals[t][h], tile_equal(0));
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
