// sliced_matmul.h over the Vec and the CodeLine of an instruction set. A code_line_ISA-inl.h offers, beside
// the Vec, CodeLine (a line of codes: 16 lanes of 32 bits) with load_line store_line widen_bytes keep_bits
// either shift_right shift_left to_floats, and kSlicedVecs, how many Vec of accumulators registers hold.
#pragma once

#include "kernels/sliced_matmul_impl.h"
#include "kernels/vec-inl.h"

namespace sluice::kernels {
namespace {

using codec::kCellColumns;
using codec::kLineBytes;
using codec::kStripRows;

inline constexpr unsigned kQuads = 8;  // of a cell: columns 4q … 4q+3, which are bytes 0 … 3 of a lane
inline constexpr std::size_t kCellBytes = kQuads * kLineBytes;  // unpacked: a byte a code

constexpr unsigned in_all_bytes(unsigned bits) { return bits * 0x01010101u; }

// kBits bits of every byte, from `from` on, at `to`; the others 0.
template <unsigned kBits>
[[gnu::always_inline]] inline CodeLine field(CodeLine line, unsigned from, unsigned to) {
  if (from > to) line = shift_right(line, from - to);
  if (from < to) line = shift_left(line, to - from);
  return keep_bits(line, in_all_bytes(((1u << kBits) - 1) << to));
}

// Codes of a cell in one slice (docs/store-format.md, section 4.2). at(): those of a quad, at bit `to` of
// their bytes, the other bits 0. loose(): at bit 0, whatever is in the bits above them.
template <unsigned kBits>
struct Slice {
  static constexpr unsigned kLines = kBits;
  [[gnu::always_inline]] static CodeLine loose(const std::byte* cell, unsigned quad) {
    const CodeLine line = load_line(cell + kLineBytes * (quad % kLines));
    const unsigned from = quad / kLines * kBits;
    return from == 0 ? line : shift_right(line, from);
  }
  [[gnu::always_inline]] static CodeLine at(const std::byte* cell, unsigned quad, unsigned to) {
    return field<kBits>(load_line(cell + kLineBytes * (quad % kLines)), quad / kLines * kBits, to);
  }
};
template <>
struct Slice<3> {
  static constexpr unsigned kLines = 3;
  [[gnu::always_inline]] static CodeLine loose(const std::byte* cell, unsigned quad) {
    return at(cell, quad, 0);
  }
  [[gnu::always_inline]] static CodeLine at(const std::byte* cell, unsigned quad, unsigned to) {
    return either(Slice<2>::at(cell, quad, to), field<1>(load_line(cell + 2 * kLineBytes), quad, to + 2));
  }
};
// Codes of a view as they are stored.
template <unsigned kMsb, unsigned kLsb>
struct Stored {
  static constexpr bool kWide = kMsb + kLsb == kWideBits;
  static constexpr unsigned kMask = (1u << (kMsb + kLsb)) - 1;
  const std::byte *msb, *lsb;

  Stored(const SlicedArgs& a, std::size_t cell)
      : msb(a.msb + cell * kLineBytes * kMsb), lsb(kLsb == 0 ? nullptr : a.lsb + cell * kLineBytes * kLsb) {}
  [[gnu::always_inline]] void next() {
    msb += kLineBytes * kMsb;
    lsb += kLineBytes * kLsb;
  }
  // Under kMask; other bits may be set.
  [[gnu::always_inline]] CodeLine quad(unsigned q) const {
    if constexpr (kLsb == 0)
      return Slice<kMsb>::loose(msb, q);
    else
      return either(Slice<kMsb>::at(msb, q, kLsb), Slice<kLsb>::at(lsb, q, 0));
  }
};

// A byte a code, as unpack() leaves them.
template <bool kIsWide>
struct Unpacked {
  static constexpr bool kWide = kIsWide;
  static constexpr unsigned kMask = 0xff;
  const std::byte* lines;
  [[gnu::always_inline]] CodeLine quad(unsigned q) const { return load_line(lines + kLineBytes * q); }
};

template <unsigned kMsb, unsigned kLsb>
inline void unpack(Stored<kMsb, kLsb> codes, std::size_t cells, std::byte* lines) {
  for (std::size_t i = 0; i < cells; ++i, codes.next()) {
#pragma GCC unroll 8
    for (unsigned q = 0; q < kQuads; ++q)
      store_line(lines + i * kCellBytes + kLineBytes * q,
                 keep_bits(codes.quad(q), in_all_bytes(codes.kMask)));
  }
}

// Column 4q + k, times 2^8k (wide codes of k = 3: as they are).
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
#pragma GCC unroll 8
  for (unsigned q = 0; q < kQuads; ++q) {
    const CodeLine quad = codes.quad(q);
#pragma GCC unroll 16
    for (int k = 0; k < K; ++k) {
      const Vec weight = column<Codes>(quad, kFirst + k);
#pragma GCC unroll 16
      for (int t = 0; t < T; ++t)
        acc[k][t] = fma(weight, set1(x[t * x_stride + 4 * q + kFirst + k]), acc[k][t]);
    }
  }
}

// Chain 2 + chain 3.
template <class Codes>
[[gnu::always_inline]] inline Vec last_pair(Vec chain2, Vec chain3) {
  return Codes::kWide ? fma(chain3, set1(kWideFactor), chain2) : add(chain2, chain3);
}

// The sum of a group, before its zero point: as many chains at once as registers hold.
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

[[gnu::always_inline]] inline Vec minus_zeros(const SlicedArgs& a, std::size_t cell) {
  const CodeLine zeros = shift_right(widen_bytes(a.zeros + kStripRows * cell), a.zero_shift);
  return fma(to_floats(zeros), set1(a.minus_zero_factor), set1(a.minus_zero_offset));
}

[[gnu::always_inline]] inline Vec scales(const SlicedArgs& a, std::size_t cell) {
  return F16::in_order(a.scales + 2 * kStripRows * cell);
}

// y of one strip and token.
inline void finish(const SlicedArgs& a, std::size_t strip, std::size_t token, Vec total) {
  const std::size_t row = strip * kStripRows;
  const std::size_t n = a.rows - row < kStripRows ? a.rows - row : kStripRows;
  total = mul(total, set1(a.factor));
  if (a.bias != nullptr) total = add(total, load_first(a.bias + row, n, 0.0f));
  store_first(a.y + token * a.y_stride + row, n, total);
}

// One token: codes go from memory into registers and are forgotten.
template <class Codes>
inline void one_token(const SlicedArgs& a, std::size_t strip_begin, std::size_t strip_end) {
  for (std::size_t strip = strip_begin; strip < strip_end; ++strip) {
    const std::size_t first = strip * a.groups;
    Codes codes(a, first);
    const float* const sums = a.packed + kCellColumns * a.groups;
    Vec total = zero();
    for (std::size_t g = 0; g < a.groups; ++g, codes.next()) {
      Vec sum[1];
      sum_cell<1>(codes, a.packed + kCellColumns * g, 0, sum);
      total = fma(scales(a, first + g), fma(minus_zeros(a, first + g), set1(sums[g]), sum[0]), total);
    }
    finish(a, strip, 0, total);
  }
}

// With many, codes are unpacked for 16 groups at a time: they (8 KiB) and what these columns have of a tile
// of tokens (12 KiB) stay in an L1 of 32 KiB. As many tokens at once as leave their activations in L2.
inline constexpr std::size_t kBlockGroups = 16;
inline constexpr std::size_t kTokensAtOnce = 96;

struct SlicedBlock {
  std::size_t first_cell, first_group, groups;
  std::size_t token;       // first of the tile
  const std::byte* lines;  // unpacked
  float* totals;           // (T, 16)
};

template <bool kWide, int T>
[[gnu::noinline]] void sliced_tile(const SlicedArgs& a, const SlicedBlock& b) {
  const float* const x = a.packed + b.token * a.packed_stride;
  const float* const sums = x + kCellColumns * a.groups + b.first_group;
  for (std::size_t g = 0; g < b.groups; ++g) {
    Vec sum[T];
    sum_cell<T>(Unpacked<kWide>{b.lines + kCellBytes * g}, x + kCellColumns * (b.first_group + g),
                a.packed_stride, sum);
    const Vec scale = scales(a, b.first_cell + g), minus_zero = minus_zeros(a, b.first_cell + g);
#pragma GCC unroll 16
    for (int t = 0; t < T; ++t) {
      float* const total = b.totals + kStripRows * t;
      store(total, fma(scale, fma(minus_zero, set1(sums[t * a.packed_stride + g]), sum[t]), load(total)));
    }
  }
}

// The tile of `tokens` tokens, T at most.
template <bool kWide, int T>
inline void sliced_tokens(std::size_t tokens, const SlicedArgs& a, const SlicedBlock& b) {
  if constexpr (T > 1) {
    if (tokens < T) return sliced_tokens<kWide, T - 1>(tokens, a, b);
  }
  sliced_tile<kWide, T>(a, b);
}

template <class Codes>
inline void some_tokens(const SlicedArgs& a, std::size_t strip, std::size_t token_begin,
                        std::size_t token_end) {
  alignas(64) std::byte lines[kBlockGroups * kCellBytes];
  alignas(64) float totals[kTokensAtOnce * kStripRows];
  for (std::size_t i = 0; i < (token_end - token_begin) * kStripRows; ++i) totals[i] = 0.0f;
  const std::size_t tiles = (token_end - token_begin + kTokens - 1) / kTokens;
  for (std::size_t g = 0; g < a.groups; g += kBlockGroups) {
    SlicedBlock block{};
    block.first_cell = strip * a.groups + g;
    block.first_group = g;
    block.groups = a.groups - g < kBlockGroups ? a.groups - g : kBlockGroups;
    block.lines = lines;
    unpack(Codes(a, block.first_cell), block.groups, lines);
    block.token = token_begin;
    for (std::size_t i = 0; i < tiles; ++i) {  // sizes differ by one at most
      const std::size_t n = (token_end - block.token + (tiles - i) - 1) / (tiles - i);
      block.totals = totals + (block.token - token_begin) * kStripRows;
      sliced_tokens<Codes::kWide, kTokens>(n, a, block);
      block.token += n;
    }
  }
  for (std::size_t t = token_begin; t < token_end; ++t)
    finish(a, strip, t, load(totals + (t - token_begin) * kStripRows));
}

template <class Codes>
inline void strips_of(const SlicedArgs& a, std::size_t strip_begin, std::size_t strip_end) {
  if (a.tokens == 1) return one_token<Codes>(a, strip_begin, strip_end);
  for (std::size_t t = 0; t < a.tokens; t += kTokensAtOnce) {
    const std::size_t end = a.tokens - t < kTokensAtOnce ? a.tokens : t + kTokensAtOnce;
    for (std::size_t strip = strip_begin; strip < strip_end; ++strip) some_tokens<Codes>(a, strip, t, end);
  }
}

// The bits were checked by the dispatch: of kStoredSliceBits, with the lower slice or without.
inline void sliced_strips(const SlicedArgs& a, std::size_t strip_begin, std::size_t strip_end) {
  const bool both = a.lsb_bits != 0;
  if (a.msb_bits == 4)
    return (both ? strips_of<Stored<4, 4>> : strips_of<Stored<4, 0>>)(a, strip_begin, strip_end);
  if (a.msb_bits == 3)
    return (both ? strips_of<Stored<3, 3>> : strips_of<Stored<3, 0>>)(a, strip_begin, strip_end);
  return (both ? strips_of<Stored<2, 2>> : strips_of<Stored<2, 0>>)(a, strip_begin, strip_end);
}

}  // namespace
}  // namespace sluice::kernels
