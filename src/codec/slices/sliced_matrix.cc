#include "codec/slices/sliced_matrix.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>

#include "base/error.h"
#include "codec/slices/quantised_words.h"

namespace sluice::codec {
namespace {

constexpr std::size_t kLanes = 8;  // width of the loops below, which the compiler vectorises

struct Group {
  std::uint16_t scale = kScaleOne;
  std::uint8_t zero = 0;
  std::uint8_t codes[kCellColumns] = {};
};

// quantise_affine() for 32 weights.
template <class Real>
Group quantise_group(const Real* weights, unsigned bits) {
  Real los[kLanes] = {}, his[kLanes] = {};
  for (std::size_t i = 0; i < kCellColumns; i += kLanes) {
    for (std::size_t j = 0; j < kLanes; ++j) {
      los[j] = weights[i + j] < los[j] ? weights[i + j] : los[j];
      his[j] = weights[i + j] > his[j] ? weights[i + j] : his[j];
    }
  }
  const double lo = *std::min_element(los, los + kLanes), hi = *std::max_element(his, his + kLanes);
  Group group;
  if (hi == lo) return group;
  const Real most = static_cast<Real>((1u << bits) - 1);
  group.scale = scale_word((hi - lo) / static_cast<double>(most));
  const Real scale = static_cast<Real>(fp16_to_float(group.scale));
  const Real zero = static_cast<Real>(
      std::clamp(std::floor(-lo / static_cast<double>(scale) + 0.5), 0.0, static_cast<double>(most)));
  group.zero = static_cast<std::uint8_t>(zero);
  int codes[kCellColumns];
  for (std::size_t i = 0; i < kCellColumns; ++i) {
    Real code = std::floor(weights[i] / scale + static_cast<Real>(0.5)) + zero;
    code = code < 0 ? 0 : code;
    code = code > most ? most : code;
    codes[i] = static_cast<int>(code);
  }
  for (std::size_t i = 0; i < kCellColumns; ++i) group.codes[i] = static_cast<std::uint8_t>(codes[i]);
  return group;
}

template <class Words>
void quantise(std::span<const std::byte> words, const SlicedShape& shape, const SlicedPlanes& planes,
              std::uint64_t first_row) {
  const unsigned low = shape.bits.low, shift = shape.bits.shift();
  const std::uint64_t groups = shape.groups();
  for (std::uint64_t row = 0; row < shape.strips() * kStripRows; ++row) {
    const std::uint64_t strip = row / kStripRows;
    const std::size_t r = row % kStripRows;
    for (std::uint64_t g = 0; g < groups; ++g) {
      Group group;
      if (row < shape.rows) {
        const std::uint64_t column = g * kCellColumns;
        typename Words::Real weights[kCellColumns];
        if (!load_weights<Words>(words.data() + (row * shape.columns + column) * Words::kBytes,
                                 std::min<std::uint64_t>(kCellColumns, shape.columns - column), kCellColumns,
                                 weights))
          throw_not_finite(weights, first_row + row, column);
        group = quantise_group(weights, shape.bits.high);
      }
      std::uint8_t higher[kCellColumns], lower[kCellColumns];
      for (std::size_t i = 0; i < kCellColumns; ++i) {
        higher[i] = static_cast<std::uint8_t>(group.codes[i] >> shift);
        lower[i] = static_cast<std::uint8_t>(group.codes[i] & ((1u << shift) - 1));
      }
      const std::uint64_t cell = strip * groups + g;
      put_codes(higher, low, r, planes.msb + cell * kLineBytes * low);
      put_codes(lower, shift, r, planes.lsb + cell * kLineBytes * shift);
      std::memcpy(planes.scales + 2 * (cell * kStripRows + r), &group.scale, 2);
      std::memcpy(planes.zeros + cell * kStripRows + r, &group.zero, 1);
    }
  }
}

}  // namespace

bool can_be_quantised(DType dtype) {
  return dtype == DType::kBF16 || dtype == DType::kF16 || dtype == DType::kF32;
}

SlicedView sliced_view(const SlicedShape& shape, std::span<const std::byte> msb,
                       std::span<const std::byte> lsb) {
  SLUICE_CHECK(msb.size() == shape.msb_bytes(), std::to_string(msb.size()));
  SLUICE_CHECK(lsb.empty() || lsb.size() == shape.lsb_bytes(), std::to_string(lsb.size()));
  return {shape, msb.data(), msb.data() + shape.scales_offset(), msb.data() + shape.zeros_offset(),
          lsb.empty() ? nullptr : lsb.data()};
}

void quantise_sliced(std::span<const std::byte> words, DType dtype, const SlicedShape& shape,
                     const SlicedPlanes& planes, std::uint64_t first_row) {
  SLUICE_CHECK(words.size() == shape.rows * shape.columns * dtype_bytes(dtype), std::to_string(words.size()));
  with_words(dtype, [&](auto kind) { quantise<decltype(kind)>(words, shape, planes, first_row); });
}

void dequantise_row(const SlicedView& view, SliceView which, std::uint64_t row, std::span<float> out) {
  const SlicedShape& shape = view.shape;
  SLUICE_CHECK(out.size() == shape.columns && row < shape.rows, std::to_string(out.size()));
  SLUICE_CHECK(which != SliceView::kHigh || view.lsb != nullptr, "both slices");
  const unsigned low = shape.bits.low, shift = shape.bits.shift();
  const std::size_t r = row % kStripRows;
  for (std::uint64_t g = 0; g < shape.groups(); ++g) {
    const std::uint64_t cell = row / kStripRows * shape.groups() + g;
    std::uint8_t higher[kCellColumns], lower[kCellColumns] = {};
    get_codes(view.msb + cell * kLineBytes * low, low, r, higher);
    if (which == SliceView::kHigh) get_codes(view.lsb + cell * kLineBytes * shift, shift, r, lower);
    std::uint16_t word = 0;
    std::memcpy(&word, view.scales + 2 * (cell * kStripRows + r), 2);
    const int zero = std::to_integer<int>(view.zeros[cell * kStripRows + r]);
    const float scale = fp16_to_float(word);
    const float middle = which == SliceView::kCenter ? static_cast<float>((1u << shift) - 1) / 2 : 0.0f;
    const std::uint64_t column = g * kCellColumns;
    for (std::uint64_t c = 0; c < kCellColumns && column + c < shape.columns; ++c) {
      const int code = which == SliceView::kLow ? (higher[c] - (zero >> shift)) * (1 << shift)
                                                : (higher[c] << shift) + lower[c] - zero;
      out[column + c] = scale * (static_cast<float>(code) + middle);
    }
  }
}

}  // namespace sluice::codec
