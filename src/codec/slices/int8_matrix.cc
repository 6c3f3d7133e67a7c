#include "codec/slices/int8_matrix.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>

#include "base/error.h"
#include "codec/slices/quantised_words.h"

namespace sluice::codec {
namespace {

constexpr float kMostCode = 127;
constexpr std::size_t kCells = kInt8GroupColumns / kCellColumns;  // in one group

template <class Real>
std::uint16_t scale_of(const Real* weights) {
  Real most[8] = {};
  for (std::size_t i = 0; i < kInt8GroupColumns; i += 8) {
    for (std::size_t j = 0; j < 8; ++j) {
      const Real size = std::fabs(weights[i + j]);
      most[j] = size > most[j] ? size : most[j];
    }
  }
  const double largest = *std::max_element(most, most + 8);
  return largest == 0 ? kScaleOne : scale_word(largest / kMostCode);
}

template <class Words>
void quantise(std::span<const std::byte> words, const Int8Shape& shape, std::byte* codes, std::byte* scales,
              std::uint64_t first_row) {
  using Real = typename Words::Real;
  const std::uint64_t groups = shape.scale_groups();
  for (std::uint64_t row = 0; row < shape.strips() * kStripRows; ++row) {
    const std::uint64_t strip = row / kStripRows;
    const std::size_t r = row % kStripRows;
    for (std::uint64_t g = 0; g < groups; ++g) {
      std::uint16_t word = kScaleOne;
      std::int8_t coded[kInt8GroupColumns] = {};
      if (row < shape.rows) {
        const std::uint64_t column = g * kInt8GroupColumns;
        Real weights[kInt8GroupColumns];
        if (!load_weights<Words>(words.data() + (row * shape.columns + column) * Words::kBytes,
                                 std::min<std::uint64_t>(kInt8GroupColumns, shape.columns - column),
                                 kInt8GroupColumns, weights))
          throw_not_finite(weights, first_row + row, column);
        word = scale_of(weights);
        const Real scale = static_cast<Real>(fp16_to_float(word)), most = kMostCode;
        for (std::size_t i = 0; i < kInt8GroupColumns; ++i) {
          Real code = std::floor(weights[i] / scale + static_cast<Real>(0.5));
          code = code < -most ? -most : code;
          code = code > most ? most : code;
          coded[i] = static_cast<std::int8_t>(code);
        }
      }
      for (std::size_t c = 0; c < kCells && g * kCells + c < shape.groups(); ++c) {
        const std::uint64_t cell = strip * shape.groups() + g * kCells + c;
        put_codes(reinterpret_cast<const std::uint8_t*>(coded + c * kCellColumns), 8, r,
                  codes + cell * kLineBytes * 8);
      }
      std::memcpy(scales + 2 * ((strip * groups + g) * kStripRows + r), &word, 2);
    }
  }
}

}  // namespace

void quantise_int8(std::span<const std::byte> words, DType dtype, const Int8Shape& shape, std::byte* codes,
                   std::byte* scales, std::uint64_t first_row) {
  SLUICE_CHECK(words.size() == shape.rows * shape.columns * dtype_bytes(dtype), std::to_string(words.size()));
  with_words(dtype, [&](auto kind) { quantise<decltype(kind)>(words, shape, codes, scales, first_row); });
}

void dequantise_int8_row(std::span<const std::byte> matrix, const Int8Shape& shape, std::uint64_t row,
                         std::span<float> out) {
  SLUICE_CHECK(matrix.size() == shape.bytes(), std::to_string(matrix.size()));
  SLUICE_CHECK(out.size() == shape.columns && row < shape.rows, std::to_string(out.size()));
  const std::uint64_t strip = row / kStripRows;
  const std::size_t r = row % kStripRows;
  for (std::uint64_t column = 0; column < shape.columns; column += kCellColumns) {
    const std::uint64_t cell = strip * shape.groups() + column / kCellColumns;
    std::uint8_t codes[kCellColumns];
    get_codes(matrix.data() + cell * kLineBytes * 8, 8, r, codes);
    const std::uint64_t at = (strip * shape.scale_groups() + column / kInt8GroupColumns) * kStripRows + r;
    std::uint16_t word = 0;
    std::memcpy(&word, matrix.data() + shape.scales_offset() + 2 * at, 2);
    for (std::uint64_t c = 0; c < kCellColumns && column + c < shape.columns; ++c)
      out[column + c] = fp16_to_float(word) * static_cast<float>(static_cast<std::int8_t>(codes[c]));
  }
}

}  // namespace sluice::codec
