// The order of sums of int8_matmul.h in plain code: the oracle of every instruction set.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>

#include "base/float16.h"
#include "codec/slices/int8_matrix.h"
#include "kernels/kernel_table.h"
#include "kernels/products/codes/int8_matmul_impl.h"

namespace sluice::kernels {
namespace {

using codec::kCellColumns;
using codec::kInt8GroupColumns;
using codec::kLineBytes;
using codec::kStripRows;

float int8_row(const Int8Args& a, const float* x, std::size_t row) {
  const codec::Int8Shape shape{{a.rows, a.columns}};
  const std::size_t strip = row / kStripRows, r = row % kStripRows;
  float total = 0;
  for (std::size_t first = 0; first < a.columns; first += kInt8GroupColumns) {
    float chains[4] = {};
    for (std::size_t c = first; c < std::min<std::size_t>(first + kInt8GroupColumns, a.columns); ++c) {
      const std::size_t cell = strip * shape.groups() + c / kCellColumns, in_cell = c % kCellColumns;
      const std::byte code = a.codes[kLineBytes * (8 * cell + in_cell / 4) + 4 * r + in_cell % 4];
      const auto weight = static_cast<float>(static_cast<std::int8_t>(code));
      chains[c % 4] = std::fma(weight, x[packed_place(c)], chains[c % 4]);
    }
    std::uint16_t word;
    const std::size_t group = strip * shape.scale_groups() + first / kInt8GroupColumns;
    std::memcpy(&word, a.scales + 2 * (group * kStripRows + r), sizeof(word));
    total = std::fma(fp16_to_float(word), (chains[0] + chains[1]) + (chains[2] + chains[3]), total);
  }
  return a.bias == nullptr ? total : total + a.bias[row];
}

void int8_strips(const Int8Args& a, std::size_t strip_begin, std::size_t strip_end) {
  const std::size_t end = std::min(strip_end * kStripRows, a.rows);
  for (std::size_t t = 0; t < a.tokens; ++t)
    for (std::size_t row = strip_begin * kStripRows; row < end; ++row)
      a.y[t * a.y_stride + row] = int8_row(a, a.packed + t * a.packed_stride, row);
}

}  // namespace

const Int8Kernels kInt8Scalar = {int8_strips};

}  // namespace sluice::kernels
