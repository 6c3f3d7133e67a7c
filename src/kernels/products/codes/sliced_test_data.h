// Matrices of family `sliced` for the tests of this folder.
#pragma once

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "codec/slices/slice_bits.h"
#include "codec/slices/slice_cells.h"
#include "codec/slices/sliced_matrix.h"
#include "kernels/test_data.h"

namespace sluice::kernels {

using codec::SliceBits;
using codec::SlicedShape;
using codec::SlicedView;
using codec::SliceView;

inline constexpr SliceView kViews[] = {SliceView::kHigh, SliceView::kLow, SliceView::kCenter};

struct SlicedMatrix {
  SlicedShape shape;
  std::vector<std::byte> msb, lsb;
  SlicedView view() const { return codec::sliced_view(shape, msb, lsb); }
};

inline SlicedMatrix matrix_of(std::span<const float> weights, std::size_t rows, std::size_t columns,
                              SliceBits bits) {
  SlicedMatrix m{{{rows, columns}, bits}, {}, {}};
  m.msb.resize(m.shape.msb_bytes());
  m.lsb.resize(m.shape.lsb_bytes());
  codec::quantise_sliced(std::as_bytes(weights), DType::kF32, m.shape,
                         {m.msb.data(), m.msb.data() + m.shape.scales_offset(),
                          m.msb.data() + m.shape.zeros_offset(), m.lsb.data()});
  return m;
}

inline SlicedMatrix normal_matrix(std::mt19937_64& random, std::size_t rows, std::size_t columns,
                                  SliceBits bits) {
  std::vector<float> weights = normal_floats(random, rows * columns);
  // Groups in which all weights are of one sign, or zero, have zero points at the ends.
  const auto sign = static_cast<int>(random() % 4);
  for (float& w : weights) w = sign == 0 ? std::fabs(w) : sign == 1 ? -std::fabs(w) : w;
  if (random() % 4 == 0) std::fill(weights.begin(), weights.begin() + static_cast<long>(columns), 0.0f);
  return matrix_of(weights, rows, columns, bits);
}

// Any bytes: codes, zero points and scales that no coder writes, including infinities and NaN.
inline SlicedMatrix any_bytes(std::mt19937_64& random, std::size_t rows, std::size_t columns,
                              SliceBits bits) {
  SlicedMatrix m{{{rows, columns}, bits}, {}, {}};
  m.msb.resize(m.shape.msb_bytes());
  m.lsb.resize(m.shape.lsb_bytes());
  for (std::byte& b : m.msb) b = static_cast<std::byte>(random());
  for (std::byte& b : m.lsb) b = static_cast<std::byte>(random());
  return m;
}

inline std::string name_of(const SlicedShape& shape, SliceView which, std::size_t tokens) {
  return std::to_string(shape.rows) + 'x' + std::to_string(shape.columns) + ", " +
         codec::slice_bits_text(shape.bits) + ", view " + std::to_string(static_cast<int>(which)) + ", " +
         std::to_string(tokens) + " tokens, seed " + std::to_string(test_seed());
}

struct SlicedProduct {
  std::size_t rows, columns, tokens;
};

// Every small size once in each direction, and sizes around the blocks of groups and tokens.
inline std::vector<SlicedProduct> sliced_products(std::mt19937_64& random) {
  std::vector<SlicedProduct> all;
  for (std::size_t i = 1; i <= 50; ++i) all.push_back({i, 1 + random() % 200, 1 + random() % 8});
  for (std::size_t i = 1; i <= 130; ++i) all.push_back({1 + random() % 40, i, 1 + random() % 3});
  for (std::size_t i = 1; i <= 40; ++i) all.push_back({1 + random() % 40, 1 + random() % 200, i});
  all.push_back({60, 2048, 1});
  all.push_back({40, 1100, 7});
  all.push_back({17, 513, 96});
  all.push_back({17, 511, 97});
  all.push_back({16, 544, 200});
  return all;
}

}  // namespace sluice::kernels
