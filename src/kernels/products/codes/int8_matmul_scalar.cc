// The order of sums of int8_matmul_impl.h in plain code: the oracle of every instruction set.
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

float int8_row(const ProductArgs& a, const float* x, std::size_t row) {
  const codec::Int8Shape shape{{a.rows, a.columns}};
  const std::byte *const codes = a.planes[0], *const scales = codes + shape.scales_offset();
  const std::size_t strip = row / kStripRows, r = row % kStripRows;
  float total = 0;
  for (std::size_t first = 0; first < a.columns; first += kInt8GroupColumns) {
    float chains[4] = {};
    for (std::size_t c = first; c < std::min<std::size_t>(first + kInt8GroupColumns, a.columns); ++c) {
      const std::size_t cell = strip * shape.groups() + c / kCellColumns, in_cell = c % kCellColumns;
      const std::byte code = codes[kLineBytes * (8 * cell + in_cell / 4) + 4 * r + in_cell % 4];
      const auto weight = static_cast<float>(static_cast<std::int8_t>(code));
      chains[c % 4] = std::fma(weight, x[arranged_place(c)], chains[c % 4]);
    }
    std::uint16_t word;
    const std::size_t group = strip * shape.scale_groups() + first / kInt8GroupColumns;
    std::memcpy(&word, scales + 2 * (group * kStripRows + r), sizeof(word));
    total = std::fma(fp16_to_float(word), (chains[0] + chains[1]) + (chains[2] + chains[3]), total);
  }
  return a.bias == nullptr ? total : total + a.bias[row];
}

void int8_rows(const ProductArgs& a, std::size_t begin, std::size_t end) {
  for (std::size_t t = 0; t < a.tokens; ++t)
    for (std::size_t row = begin; row < end; ++row)
      a.y[t * a.y_stride + row] = int8_row(a, a.x + t * a.x_stride, row);
}

}  // namespace

const Int8Kernels kInt8Scalar = {int8_rows};

}  // namespace sluice::kernels
