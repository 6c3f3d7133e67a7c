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

GroupRow slices_row(const SlicedArgs& a, std::size_t strip, std::size_t g, std::size_t r) {
  const std::size_t cell = strip * a.groups + g;
  const unsigned low = a.bits.low, shift = a.bits.shift();
  const bool both = a.which == SliceView::kHigh;
  std::uint8_t higher[kCellColumns], lower[kCellColumns] = {};
  codec::get_codes(a.msb + cell * kLineBytes * low, low, r, higher);
  if (both) codec::get_codes(a.lsb + cell * kLineBytes * shift, shift, r, lower);
  GroupRow row{};
  for (std::size_t c = 0; c < kCellColumns; ++c)
    row.codes[c] = both ? higher[c] << shift | lower[c] : higher[c];
  const auto zero = std::to_integer<std::int32_t>(a.zeros[cell * kStripRows + r]);
  row.zero = a.which == SliceView::kLow ? zero >> shift : zero;
  row.steps = 1;
  if (a.which == SliceView::kCenter) {  // (zero − (2^S − 1)/2)/2^S
    row.zero = 2 * zero - ((1 << shift) - 1);
    row.steps = 2 << shift;
  }
  row.scale = scale_at(a.scales, cell * kStripRows + r);
  return row;
}

GroupRow dense_row(const SlicedArgs& a, std::size_t strip, std::size_t g, std::size_t r) {
  constexpr std::size_t kCells = codec::kInt8GroupColumns / kCellColumns;
  GroupRow row{};
  for (std::size_t c = 0; c < kCellColumns; ++c) {
    const std::size_t line = (strip * a.groups + g) * 8 + c / 4;
    row.codes[c] = static_cast<std::int8_t>(a.msb[kLineBytes * line + 4 * r + c % 4]);
  }
  row.steps = 1;
  const std::size_t groups = (a.groups + kCells - 1) / kCells;
  row.scale = scale_at(a.scales, (strip * groups + g / kCells) * kStripRows + r);
  return row;
}

template <GroupRow (*kRow)(const SlicedArgs&, std::size_t, std::size_t, std::size_t)>
void strips_scalar(const SlicedArgs& a, std::size_t strip_begin, std::size_t strip_end) {
  const std::size_t end = strip_end * kStripRows < a.rows ? strip_end * kStripRows : a.rows;
  for (std::size_t t = 0; t < a.tokens; ++t) {
    const CodedToken<const float> x(a.packed + t * a.packed_stride, a.groups);
    for (std::size_t row = strip_begin * kStripRows; row < end; ++row) {
      float total = 0;
      for (std::size_t g = 0; g < a.groups; ++g) {
        const GroupRow w = kRow(a, row / kStripRows, g, row % kStripRows);
        std::int32_t sum = 0;
        for (std::size_t c = 0; c < kCellColumns; ++c)
          sum += (w.steps * w.codes[c] - w.zero) * static_cast<std::int8_t>(x.codes[g * kCellColumns + c]);
        const float exact = static_cast<float>(sum) / static_cast<float>(w.steps);
        total = std::fma(w.scale, x.scales[g] * exact, total);
      }
      const float y = total * a.factor;
      a.y[t * a.y_stride + row] = a.bias == nullptr ? y : y + a.bias[row];
    }
  }
}

}  // namespace

const IntegerKernels kIntegerScalar = {strips_scalar<slices_row>, strips_scalar<dense_row>};

}  // namespace sluice::kernels
