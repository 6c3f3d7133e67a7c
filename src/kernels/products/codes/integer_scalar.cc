// The order of sums of activation_codes.h in plain code and whole numbers: the oracle of every instruction
// set.
#include <cmath>
#include <cstdint>
#include <cstring>

#include "base/float16.h"
#include "codec/slices/int8_matrix.h"
#include "kernels/kernel_table.h"
#include "kernels/products/codes/integer_impl.h"

namespace sluice::kernels {
namespace {

using codec::kCellColumns;
using codec::kLineBytes;
using codec::kStripRows;
using codec::SliceView;

float scale_at(const std::byte* scales, std::size_t index) {
  std::uint16_t word;
  std::memcpy(&word, scales + 2 * index, sizeof(word));
  return fp16_to_float(word);
}

// One row of a group: its codes, the number to subtract from each `steps` of them, and its scale.
struct GroupRow {
  std::int32_t codes[kCellColumns];
  std::int32_t zero, steps;
  float scale;
};

template <unsigned kHigh, unsigned kLow>
GroupRow slices_row(const ProductArgs& a, std::size_t strip, std::size_t g, std::size_t r) {
  const codec::SlicedShape shape{{a.rows, a.columns}, {kHigh, kLow}};
  const std::byte *const msb = a.planes[0], *const lsb = a.planes[1];
  const std::size_t cell = strip * shape.groups() + g;
  const unsigned low = kLow, shift = kHigh - kLow;
  const bool both = a.view == SliceView::kHigh;
  std::uint8_t higher[kCellColumns], lower[kCellColumns] = {};
  codec::get_codes(msb + cell * kLineBytes * low, low, r, higher);
  if (both) codec::get_codes(lsb + cell * kLineBytes * shift, shift, r, lower);
  GroupRow row{};
  for (std::size_t c = 0; c < kCellColumns; ++c)
    row.codes[c] = both ? higher[c] << shift | lower[c] : higher[c];
  const auto zero = std::to_integer<std::int32_t>(msb[shape.zeros_offset() + cell * kStripRows + r]);
  row.zero = a.view == SliceView::kLow ? zero >> shift : zero;
  row.steps = 1;
  if (a.view == SliceView::kCenter) {  // (zero − (2^S − 1)/2)/2^S
    row.zero = 2 * zero - ((1 << shift) - 1);
    row.steps = 2 << shift;
  }
  row.scale = scale_at(msb + shape.scales_offset(), cell * kStripRows + r);
  return row;
}

GroupRow dense_row(const ProductArgs& a, std::size_t strip, std::size_t g, std::size_t r) {
  constexpr std::size_t kCells = codec::kInt8GroupColumns / kCellColumns;
  const codec::Int8Shape shape{{a.rows, a.columns}};
  GroupRow row{};
  for (std::size_t c = 0; c < kCellColumns; ++c) {
    const std::size_t line = (strip * shape.groups() + g) * 8 + c / 4;
    row.codes[c] = static_cast<std::int8_t>(a.planes[0][kLineBytes * line + 4 * r + c % 4]);
  }
  row.steps = 1;
  row.scale = scale_at(a.planes[0] + shape.scales_offset(),
                       (strip * shape.scale_groups() + g / kCells) * kStripRows + r);
  return row;
}

template <GroupRow (*kRow)(const ProductArgs&, std::size_t, std::size_t, std::size_t)>
void rows_scalar(const ProductArgs& a, std::size_t begin, std::size_t end, unsigned shift) {
  const std::size_t groups = (a.columns + kCellColumns - 1) / kCellColumns;
  const float factor = a.view == SliceView::kHigh ? 1.0f : static_cast<float>(1u << shift);
  for (std::size_t t = 0; t < a.tokens; ++t) {
    const CodedToken<const float> x(a.x + t * a.x_stride, groups);
    for (std::size_t row = begin; row < end; ++row) {
      float total = 0;
      for (std::size_t g = 0; g < groups; ++g) {
        const GroupRow w = kRow(a, row / kStripRows, g, row % kStripRows);
        std::int32_t sum = 0;
        for (std::size_t c = 0; c < kCellColumns; ++c)
          sum += (w.steps * w.codes[c] - w.zero) * static_cast<std::int8_t>(x.codes[g * kCellColumns + c]);
        const float exact = static_cast<float>(sum) / static_cast<float>(w.steps);
        total = std::fma(w.scale, x.scales[g] * exact, total);
      }
      const float y = total * factor;
      a.y[t * a.y_stride + row] = a.bias == nullptr ? y : y + a.bias[row];
    }
  }
}

template <unsigned kHigh, unsigned kLow>
void sliced_rows_scalar(const ProductArgs& a, std::size_t begin, std::size_t end) {
  rows_scalar<slices_row<kHigh, kLow>>(a, begin, end, kHigh - kLow);
}
void dense_rows_scalar(const ProductArgs& a, std::size_t begin, std::size_t end) {
  rows_scalar<dense_row>(a, begin, end, 0);
}

}  // namespace

const IntegerKernels kIntegerScalar = {
    {{sliced_rows_scalar<8, 4>, sliced_rows_scalar<6, 3>, sliced_rows_scalar<4, 2>}}, dense_rows_scalar};

}  // namespace sluice::kernels
