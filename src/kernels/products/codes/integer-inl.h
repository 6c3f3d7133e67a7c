// Products of codes (activation_codes.h) over the Vec and the CodeLine of an instruction set. Beside what
// sliced_codes-inl.h wants, an integer_line_ISA-inl.h offers
//   kMostCode              the largest code of weights that add_products() takes
//   kIntegerTokens         how many tokens are multiplied with a line at once, of one plane and of two
//   no_sums, add_products(sums, codes, x)   sums of a group, in whatever form; of each lane the products of
//                          its four codes, unsigned, and those of x, signed. Eight times from no_sums() on
//   whole_sums(sums, shift)   the sums times 2^shift, in lanes of 32 bits; add_lines adds such
//   four_codes(p)          the four bytes at p in each lane
#pragma once

#include "codec/slices/int8_matrix.h"
#include "kernels/products/codes/integer_impl.h"
#include "kernels/products/codes/sliced_codes-inl.h"

namespace sluice::kernels {
namespace {

inline QuadPair keep_codes(QuadPair pair, unsigned mask) {
  return {{keep_bits(pair.quads[0], in_all_bytes(mask)), keep_bits(pair.quads[1], in_all_bytes(mask))}};
}

// The codes of slices, in one plane or in two: plane 0 plus 2^kShift times plane 1.
template <unsigned kMsb, unsigned kLsb, SliceView kView>
struct SliceCodes : Stored<kMsb, kLsb, kView> {
  using Base = Stored<kMsb, kLsb, kView>;
  static constexpr unsigned kPlanes = Base::kMask > kMostCode ? 2 : 1, kShift = kLsb;
  SliceCodes(const ProductArgs& a, std::size_t strip, std::size_t group)
      : Base(a, strip * groups_of(a) + group) {}
  template <unsigned kPlane>
  [[gnu::always_inline]] QuadPair plane(unsigned p) const {
    if constexpr (kPlanes == 1)
      return keep_codes(this->pair(p), Base::kMask);
    else if constexpr (kPlane == 0)
      return keep_codes(pair_of(Slice<kLsb>::nibbles(this->lsb, p)), (1u << kLsb) - 1);
    else
      return keep_codes(pair_of(Slice<kMsb>::nibbles(this->msb, p)), (1u << kMsb) - 1);
  }
};

// Reads groups of a dense matrix's codes, unsigned.
struct DenseCodes {
  static constexpr unsigned kPlanes = kMostCode < 255 ? 2 : 1, kShift = 4;
  static constexpr float kFactor = 1;
  static constexpr std::size_t kCellsAScale = codec::kInt8GroupColumns / kCellColumns;
  const std::byte *lines, *scales;
  std::size_t group;

  // Scales lie behind the codes of all cells.
  DenseCodes(const ProductArgs& a, std::size_t strip, std::size_t first)
      : lines(a.planes[0] + (strip * groups_of(a) + first) * kCellBytes), group(first) {
    const std::size_t scale_groups = (groups_of(a) + kCellsAScale - 1) / kCellsAScale;
    scales = a.planes[0] + cells_of(a) * kCellBytes +
             (strip * scale_groups + first / kCellsAScale) * kStripRows * 2;
  }
  [[gnu::always_inline]] void next() {
    lines += kCellBytes;
    group += 1;
    if (group % kCellsAScale == 0) scales += kStripRows * 2;
  }
  [[gnu::always_inline]] void ask_ahead() const {
#pragma GCC unroll 8
    for (unsigned i = 0; i < 2 * kPairs; ++i)
      __builtin_prefetch(lines + 8 * kCellBytes + i * kLineBytes, 0, 3);
  }
  template <unsigned kPlane>
  [[gnu::always_inline]] QuadPair plane(unsigned p) const {
    QuadPair pair = {{differ_bits(load_line(lines + kLineBytes * p), in_all_bytes(kDenseZero)),
                      differ_bits(load_line(lines + kLineBytes * (p + kPairs)), in_all_bytes(kDenseZero))}};
    if constexpr (kPlanes == 1) return pair;
    if constexpr (kPlane == 1)
      pair = {{shift_right(pair.quads[0], kShift), shift_right(pair.quads[1], kShift)}};
    return keep_codes(pair, 0x0f);
  }
  [[gnu::always_inline]] Vec scale() const { return F16::in_order(scales); }
  [[gnu::always_inline]] Vec zero_points() const { return set1(static_cast<float>(kDenseZero)); }
};

// Products of a group with the codes of one token at `x`, in memory order.
template <class Codes>
[[gnu::always_inline]] inline CodeLine cell_sums(const Codes& codes, const std::byte* x) {
  CodeLine sums[2] = {no_sums(), no_sums()};
#pragma GCC unroll 4
  for (unsigned p = 0; p < kPairs; ++p) {
    const CodeLine first = four_codes(x + 4 * p), second = four_codes(x + 4 * (p + kPairs));
    const QuadPair pair = codes.template plane<0>(p);
    sums[0] = add_products(add_products(sums[0], pair.quads[0], first), pair.quads[1], second);
    if constexpr (Codes::kPlanes == 2) {
      const QuadPair upper = codes.template plane<1>(p);
      sums[1] = add_products(add_products(sums[1], upper.quads[0], first), upper.quads[1], second);
    }
  }
  if constexpr (Codes::kPlanes == 1) return whole_sums(sums[0], 0);
  return add_lines(whole_sums(sums[0], 0), whole_sums(sums[1], Codes::kShift));
}

// Adds a group to the totals of 16 rows.
[[gnu::always_inline]] inline Vec add_group(Vec scale, Vec zero_points, CodeLine sums, float x_scale,
                                            float minus_x_sum, Vec total) {
  const Vec sum = fma(zero_points, set1(minus_x_sum), to_floats(sums));
  return fma(scale, mul(set1(x_scale), sum), total);
}

template <class Codes>
inline void one_coded_token(const ProductArgs& a, std::size_t strip_begin, std::size_t strip_end) {
  const CodedToken<const float> x(a.x, groups_of(a));
  for (std::size_t strip = strip_begin; strip < strip_end; ++strip) {
    Codes codes(a, strip, 0);
    Vec total = zero();
    for (std::size_t g = 0; g < groups_of(a); ++g, codes.next()) {
      codes.ask_ahead();
      total = add_group(codes.scale(), codes.zero_points(), cell_sums(codes, x.codes + kCellColumns * g),
                        x.scales[g], x.minus_sums[g], total);
    }
    finish<Codes>(a, strip, 0, total);
  }
}

// Groups of a strip for many tokens: one byte per code, one line per quad, the planes of a cell one after the
// other.
inline constexpr std::size_t kCodedGroups = 16;
struct alignas(64) CodedBlock {
  std::byte codes[kCodedGroups * 2 * kCellBytes];
  float scales[kCodedGroups * kStripRows], zero_points[kCodedGroups * kStripRows];
};

template <unsigned kPlane, class Codes>
[[gnu::always_inline]] inline void unpack_plane(const Codes& codes, std::byte* cell) {
#pragma GCC unroll 4
  for (unsigned p = 0; p < kPairs; ++p) {
    const QuadPair pair = codes.template plane<kPlane>(p);
    store_line(cell + kLineBytes * p, pair.quads[0]);
    store_line(cell + kLineBytes * (p + kPairs), pair.quads[1]);
  }
}

template <class Codes>
inline void unpack_codes(Codes codes, std::size_t groups, CodedBlock& block) {
  for (std::size_t g = 0; g < groups; ++g, codes.next()) {
    std::byte* const cell = block.codes + Codes::kPlanes * kCellBytes * g;
    unpack_plane<0>(codes, cell);
    if constexpr (Codes::kPlanes == 2) unpack_plane<1>(codes, cell + kCellBytes);
    store(block.scales + kStripRows * g, codes.scale());
    store(block.zero_points + kStripRows * g, codes.zero_points());
  }
}

// A block, and its columns of some tokens.
struct CodedTile {
  const CodedBlock* block;
  std::size_t groups;  // in the block
  const std::byte* x;  // codes of the first token and group
  const float *x_scales, *x_minus_sums;
  std::size_t x_stride;  // for all three arrays, in floats
  std::size_t tokens;
  float* totals;  // (tokens, 16)
};

inline CodedTile from_token(CodedTile tile, std::size_t first, std::size_t tokens) {
  tile.x += first * tile.x_stride * sizeof(float);
  tile.x_scales += first * tile.x_stride;
  tile.x_minus_sums += first * tile.x_stride;
  tile.totals += first * kStripRows;
  tile.tokens = tokens;
  return tile;
}

template <unsigned kPlanes, unsigned kShift, int T>
[[gnu::noinline]] void coded_tile(const CodedTile& d) {
  for (std::size_t g = 0; g < d.groups; ++g) {
    const std::byte* const cell = d.block->codes + kPlanes * kCellBytes * g;
    const std::byte* const x = d.x + kCellColumns * g;
    CodeLine sums[kPlanes][T];
#pragma GCC unroll 2
    for (unsigned plane = 0; plane < kPlanes; ++plane) {
#pragma GCC unroll 16
      for (int t = 0; t < T; ++t) sums[plane][t] = no_sums();
    }
#pragma GCC unroll 8
    for (unsigned q = 0; q < 2 * kPairs; ++q) {
      const CodeLine line = load_line(cell + kLineBytes * q);
      const CodeLine upper = kPlanes == 2 ? load_line(cell + kCellBytes + kLineBytes * q) : line;
#pragma GCC unroll 16
      for (int t = 0; t < T; ++t) {
        const CodeLine four = four_codes(x + t * d.x_stride * sizeof(float) + 4 * q);
        sums[0][t] = add_products(sums[0][t], line, four);
        if constexpr (kPlanes == 2) sums[1][t] = add_products(sums[1][t], upper, four);
      }
    }
    const Vec scale = load(d.block->scales + kStripRows * g);
    const Vec zero_points = load(d.block->zero_points + kStripRows * g);
#pragma GCC unroll 16
    for (int t = 0; t < T; ++t) {
      CodeLine whole = whole_sums(sums[0][t], 0);
      if constexpr (kPlanes == 2) whole = add_lines(whole, whole_sums(sums[1][t], kShift));
      float* const total = d.totals + kStripRows * t;
      store(total, add_group(scale, zero_points, whole, d.x_scales[t * d.x_stride + g],
                             d.x_minus_sums[t * d.x_stride + g], load(total)));
    }
  }
}

// Multiplies a tile of at most T tokens.
template <unsigned kPlanes, unsigned kShift, int T>
inline void coded_tokens(const CodedTile& d) {
  if constexpr (T > 1) {
    if (d.tokens < T) return coded_tokens<kPlanes, kShift, T - 1>(d);
  }
  coded_tile<kPlanes, kShift, T>(d);
}

// Multiplies blocks with vectors.
struct VectorTiles {
  template <unsigned kPlanes, unsigned kShift>
  static void multiply(const CodedTile& all) {
    constexpr int kMost = kIntegerTokens[kPlanes - 1];
    const std::size_t tiles = (all.tokens + kMost - 1) / kMost;
    std::size_t t = 0;
    for (std::size_t i = 0; i < tiles; ++i) {  // sizes differ by one at most
      const std::size_t n = (all.tokens - t + (tiles - i) - 1) / (tiles - i);
      coded_tokens<kPlanes, kShift, kMost>(from_token(all, t, n));
      t += n;
    }
  }
};

// At most this many tokens at once: their codes stay in L2 and their totals in L1.
inline constexpr std::size_t kCodedAtOnce = 128;

// Multiplies one strip with at most kCodedAtOnce tokens.
template <class Codes, class Tiles>
inline void some_coded_tokens(const ProductArgs& a, std::size_t strip, std::size_t token_begin,
                              std::size_t token_end) {
  CodedBlock block;
  alignas(64) float totals[kCodedAtOnce * kStripRows];
  for (std::size_t i = 0; i < (token_end - token_begin) * kStripRows; ++i) totals[i] = 0.0f;
  const CodedToken<const float> x(a.x + token_begin * a.x_stride, groups_of(a));
  for (std::size_t g = 0; g < groups_of(a); g += kCodedGroups) {
    const std::size_t groups = groups_of(a) - g < kCodedGroups ? groups_of(a) - g : kCodedGroups;
    unpack_codes(Codes(a, strip, g), groups, block);
    Tiles::template multiply<Codes::kPlanes, Codes::kShift>({&block, groups, x.codes + kCellColumns * g,
                                                             x.scales + g, x.minus_sums + g, a.x_stride,
                                                             token_end - token_begin, totals});
  }
  for (std::size_t t = token_begin; t < token_end; ++t)
    finish<Codes>(a, strip, t, load(totals + (t - token_begin) * kStripRows));
}

template <class Tiles, class Codes>
inline void integer_strips(const ProductArgs& a, std::size_t strip_begin, std::size_t strip_end) {
  if (a.tokens == 1) return one_coded_token<Codes>(a, strip_begin, strip_end);
  for (std::size_t t = 0; t < a.tokens; t += kCodedAtOnce) {
    const std::size_t end = a.tokens - t < kCodedAtOnce ? a.tokens : t + kCodedAtOnce;
    for (std::size_t strip = strip_begin; strip < strip_end; ++strip)
      some_coded_tokens<Codes, Tiles>(a, strip, t, end);
  }
}

template <class Tiles, unsigned kMsb, unsigned kLsb>
inline void integer_strips_of_bits(const ProductArgs& a, std::size_t strip_begin, std::size_t strip_end) {
  if (a.view == SliceView::kHigh)
    return integer_strips<Tiles, SliceCodes<kMsb, kLsb, SliceView::kHigh>>(a, strip_begin, strip_end);
  if (a.view == SliceView::kLow)
    return integer_strips<Tiles, SliceCodes<kMsb, kLsb, SliceView::kLow>>(a, strip_begin, strip_end);
  integer_strips<Tiles, SliceCodes<kMsb, kLsb, SliceView::kCenter>>(a, strip_begin, strip_end);
}

template <class Tiles, unsigned kMsb, unsigned kLsb>
void integer_rows_of_bits(const ProductArgs& a, std::size_t begin, std::size_t end) {
  integer_strips_of_bits<Tiles, kMsb, kLsb>(a, begin / kStripRows, (end + kStripRows - 1) / kStripRows);
}

template <class Tiles>
void integer_dense_rows(const ProductArgs& a, std::size_t begin, std::size_t end) {
  integer_strips<Tiles, DenseCodes>(a, begin / kStripRows, (end + kStripRows - 1) / kStripRows);
}

template <class Tiles>
constexpr IntegerKernels integer_kernels() {
  return {{{integer_rows_of_bits<Tiles, 4, 4>, integer_rows_of_bits<Tiles, 3, 3>,
            integer_rows_of_bits<Tiles, 2, 2>}},
          integer_dense_rows<Tiles>};
}

}  // namespace
}  // namespace sluice::kernels
