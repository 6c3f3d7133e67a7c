// int8_matmul_impl.h over the Vec and the CodeLine of an instruction set (sliced_codes-inl.h says what a
// CodeLine offers).
#pragma once

#include "codec/slices/int8_matrix.h"
#include "kernels/lanes/vec-inl.h"
#include "kernels/products/codes/int8_matmul_impl.h"

namespace sluice::kernels {
namespace {

using codec::kCellColumns;
using codec::kInt8GroupColumns;
using codec::kLineBytes;
using codec::kStripRows;

// The weights of a group without their scale: a Vec of 16 rows for each column, in order. It stays in the L1
// cache, so that any number of tokens can follow with the same few lines of code; a single token waits for
// memory.
struct alignas(64) Int8Group {
  float columns[kInt8GroupColumns * kStripRows];
};

// Lines of `columns` columns, a multiple of 4.
inline void widen_group(const std::byte* lines, std::size_t columns, Int8Group& group) {
  const Vec offset = set1(128.0f);
  for (std::size_t c = 0; c < columns; c += 4, lines += kLineBytes) {
    __builtin_prefetch(lines + 4096, 0, 3);
    // Signed codes are unsigned codes less 128.
    const CodeLine line = differ_bits(load_line(lines), 0x80808080u);
#pragma GCC unroll 4
    for (unsigned k = 0; k < 4; ++k)
      store(group.columns + kStripRows * (c + k),
            sub(to_floats(keep_bits(shift_right(line, 8 * k), 0xff)), offset));
  }
}

// `x`: packed activations of the group, whole blocks of 32.
inline Vec sum_group(const Int8Group& group, std::size_t columns, const float* x) {
  Vec chain[4] = {zero(), zero(), zero(), zero()};
  const float* weight = group.columns;
  for (std::size_t cell = 0; cell < columns; cell += kCellColumns, x += kCellColumns) {
    const std::size_t end = columns - cell < kCellColumns ? columns - cell : kCellColumns;
    for (std::size_t c = 0; c < end; c += 4, weight += 4 * kStripRows) {
      const float* const at = x + c / 2;  // even columns; odd ones are 16 further on
      chain[0] = fma(load(weight), set1(at[0]), chain[0]);
      chain[1] = fma(load(weight + kStripRows), set1(at[16]), chain[1]);
      chain[2] = fma(load(weight + 2 * kStripRows), set1(at[1]), chain[2]);
      chain[3] = fma(load(weight + 3 * kStripRows), set1(at[17]), chain[3]);
    }
  }
  return add(add(chain[0], chain[1]), add(chain[2], chain[3]));
}

// As many tokens at once as have totals in the L1 cache beside a group.
inline constexpr std::size_t kInt8Tokens = 64;

inline void int8_rows(const ProductArgs& a, std::size_t begin, std::size_t end) {
  const std::size_t strip_begin = begin / kStripRows, strip_end = (end + kStripRows - 1) / kStripRows;
  const std::size_t cells = (a.columns + kCellColumns - 1) / kCellColumns;
  const std::size_t groups = (a.columns + kInt8GroupColumns - 1) / kInt8GroupColumns;
  // Scales lie behind the codes of all cells.
  const std::byte* const codes = a.planes[0];
  const std::byte* const scales = codes + (a.rows + kStripRows - 1) / kStripRows * cells * kLineBytes * 8;
  Int8Group group;
  alignas(64) float totals[kInt8Tokens * kStripRows];
  for (std::size_t strip = strip_begin; strip < strip_end; ++strip) {
    const std::size_t row = strip * kStripRows;
    const std::size_t rows = a.rows - row < kStripRows ? a.rows - row : kStripRows;
    for (std::size_t first = 0; first < a.tokens; first += kInt8Tokens) {
      const std::size_t tokens = a.tokens - first < kInt8Tokens ? a.tokens - first : kInt8Tokens;
      for (std::size_t t = 0; t < tokens; ++t) store(totals + kStripRows * t, zero());
      for (std::size_t g = 0; g < groups; ++g) {
        const std::size_t column = g * kInt8GroupColumns, left = a.columns - column;
        // Padding has codes 0, and activations +0.
        const std::size_t columns = left < kInt8GroupColumns ? (left + 3) / 4 * 4 : kInt8GroupColumns;
        widen_group(codes + kLineBytes * 8 * (strip * cells + column / kCellColumns), columns, group);
        const Vec scale = F16::in_order(scales + 2 * kStripRows * (strip * groups + g));
        for (std::size_t t = 0; t < tokens; ++t) {
          float* const total = totals + kStripRows * t;
          const float* const x = a.x + (first + t) * a.x_stride + column;
          store(total, fma(scale, sum_group(group, columns, x), load(total)));
        }
      }
      for (std::size_t t = 0; t < tokens; ++t) {
        Vec total = load(totals + kStripRows * t);
        if (a.bias != nullptr) total = add(total, load_first(a.bias + row, rows, 0.0f));
        store_first(a.y + (first + t) * a.y_stride + row, rows, total);
      }
    }
  }
}

}  // namespace
}  // namespace sluice::kernels
