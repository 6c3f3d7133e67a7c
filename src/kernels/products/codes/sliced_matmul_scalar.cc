// The order of sums of sliced_matmul.h in plain code: the oracle of every instruction set.
#include <cmath>
#include <cstdint>
#include <cstring>
#include <vector>

#include "base/float16.h"
#include "codec/slices/sliced_matrix.h"
#include "kernels/kernel_table.h"
#include "kernels/products/codes/sliced_matmul_impl.h"

namespace sluice::kernels {
namespace {

using codec::kCellColumns;
using codec::kLineBytes;
using codec::kStripRows;
using codec::SliceView;

// One row of a group: its codes as multiplied numbers.
struct GroupRow {
  float codes[kCellColumns];
  float scale, zero;
  float wide;  // for chain 3
};

// The number that is subtracted from the codes of the view.
float zero_of(const ProductArgs& a, unsigned shift, unsigned zero) {
  const float step = static_cast<float>(1u << shift);
  if (a.view == SliceView::kLow) return static_cast<float>(zero >> shift);
  if (a.view == SliceView::kCenter) return (static_cast<float>(zero) - (step - 1) / 2) / step;
  return static_cast<float>(zero);
}

GroupRow group_row(const ProductArgs& a, const codec::SlicedView& w, std::size_t cell, std::size_t r) {
  const codec::SliceBits bits = w.shape.bits;
  const unsigned low = bits.low, shift = bits.shift();
  const bool both = a.view == SliceView::kHigh, is_wide = both && bits.high == kWideBits;
  std::uint8_t higher[kCellColumns], lower[kCellColumns];
  codec::get_codes(w.msb + cell * kLineBytes * low, low, r, higher);
  if (both) codec::get_codes(w.lsb + cell * kLineBytes * shift, shift, r, lower);
  GroupRow row;
  row.wide = is_wide ? kWideFactor : 1.0f;
  for (std::size_t c = 0; c < kCellColumns; ++c) {
    const unsigned code = both ? unsigned{higher[c]} << shift | lower[c] : higher[c];
    const unsigned k = c % 4;
    row.codes[c] = static_cast<float>(is_wide && k == 3 ? code : code << 8 * k);
  }
  std::uint16_t word;
  std::memcpy(&word, w.scales + 2 * (cell * kStripRows + r), sizeof(word));
  row.scale = fp16_to_float(word);
  row.zero = zero_of(a, shift, std::to_integer<unsigned>(w.zeros[cell * kStripRows + r]));
  return row;
}

float add_group(const GroupRow& row, const float* x, float minus_x_sum, float total) {
  float chains[4] = {};
  for (std::size_t i = 0; i < kCellColumns; ++i) {
    const std::size_t c = i / 8 * 4 + i / 4 % 2 * 16 + i % 4;
    chains[c % 4] = std::fma(row.codes[c], x[c], chains[c % 4]);
  }
  const float sum = (chains[0] + chains[1]) + std::fma(chains[3], row.wide, chains[2]);
  return std::fma(row.scale, std::fma(row.zero, minus_x_sum, sum), total);
}

template <unsigned kHigh, unsigned kLow>
void rows_scalar(const ProductArgs& a, std::size_t begin, std::size_t end) {
  const codec::SlicedShape shape{{a.rows, a.columns}, {kHigh, kLow}};
  const codec::SlicedView w = {shape, a.planes[0], a.planes[0] + shape.scales_offset(),
                               a.planes[0] + shape.zeros_offset(), a.planes[1]};
  const std::size_t groups = shape.groups();
  const float factor = a.view == SliceView::kHigh ? 1.0f : static_cast<float>(1u << shape.bits.shift());
  std::vector<float> totals(a.tokens);
  for (std::size_t row = begin; row < end; ++row) {
    totals.assign(a.tokens, 0.0f);
    for (std::size_t g = 0; g < groups; ++g) {
      const GroupRow group = group_row(a, w, row / kStripRows * groups + g, row % kStripRows);
      for (std::size_t t = 0; t < a.tokens; ++t) {
        const float* const x = a.x + t * a.x_stride;
        totals[t] = add_group(group, x + g * kCellColumns, x[groups * kCellColumns + g], totals[t]);
      }
    }
    for (std::size_t t = 0; t < a.tokens; ++t) {
      const float sum = totals[t] * factor;
      a.y[t * a.y_stride + row] = a.bias == nullptr ? sum : sum + a.bias[row];
    }
  }
}

}  // namespace

const SlicedKernels kSlicedScalar = {{rows_scalar<8, 4>, rows_scalar<6, 3>, rows_scalar<4, 2>}};

}  // namespace sluice::kernels
