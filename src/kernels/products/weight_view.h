// A matrix in any of its views, and the product with it.
#pragma once

#include <cstddef>
#include <span>

#include "kernels/context.h"
#include "kernels/products/codes/int8_matmul.h"
#include "kernels/products/codes/sliced_matmul.h"
#include "kernels/products/packed/packed_matmul.h"
#include "kernels/products/words/matmul.h"

namespace sluice::kernels {

// A matrix in slices, and the view of it that is meant. Non-owning.
struct SlicedWeight {
  codec::SlicedView matrix;
  codec::SliceView which = codec::SliceView::kHigh;
};

// Exactly one of the four is set, or none. Non-owning.
struct WeightView {
  WeightView(const Weight& weight) : words(weight) {}         // NOLINT(google-explicit-constructor)
  WeightView(const PackedWeight& weight) : packed(weight) {}  // NOLINT(google-explicit-constructor)
  WeightView(const SlicedWeight& weight) : slices(weight) {}  // NOLINT(google-explicit-constructor)
  WeightView(const Int8Weight& weight) : int8(weight) {}      // NOLINT(google-explicit-constructor)
  bool is_packed() const { return packed.sign_mantissas != nullptr; }
  bool is_sliced() const { return slices.matrix.msb != nullptr; }
  bool is_int8() const { return int8.data != nullptr; }
  bool empty() const { return words.data == nullptr && !is_packed() && !is_sliced() && !is_int8(); }
  std::size_t rows() const {
    return is_packed()   ? packed.shape.rows
           : is_sliced() ? slices.matrix.shape.rows
           : is_int8()   ? int8.shape.rows
                         : words.rows;
  }
  std::size_t columns() const {
    return is_packed()   ? packed.shape.columns
           : is_sliced() ? slices.matrix.shape.columns
           : is_int8()   ? int8.shape.columns
                         : words.cols;
  }
  Weight words;
  PackedWeight packed;
  SlicedWeight slices;
  Int8Weight int8;
};

// Floats of activations for the product with `w`, (tokens, activation_floats(w)); w must not be empty.
inline std::size_t activation_floats(const WeightView& w) {
  return w.is_sliced() ? sliced_floats(w.columns()) : packed_floats(w.columns());
}
inline void pack_for(const Context& ctx, const WeightView& w, const float* x, std::size_t tokens,
                     std::size_t x_stride, float* packed) {
  if (w.is_sliced()) return pack_for_slices(ctx, x, tokens, w.columns(), x_stride, packed);
  pack_activations(ctx, x, tokens, w.columns(), x_stride, packed);
}

// As matmul(), packed_matmul(), sliced_matmul() or int8_matmul(); x must be packed by pack_for().
inline void matmul(const Context& ctx, const float* x, std::size_t tokens, const WeightView& w,
                   std::span<const float> bias, float* y, std::size_t y_stride) {
  if (w.is_packed()) return packed_matmul(ctx, x, tokens, w.packed, bias, y, y_stride);
  if (w.is_sliced()) return sliced_matmul(ctx, x, tokens, w.slices.matrix, w.slices.which, bias, y, y_stride);
  if (w.is_int8()) return int8_matmul(ctx, x, tokens, w.int8, bias, y, y_stride);
  matmul(ctx, x, tokens, w.words, bias, y, y_stride);
}

}  // namespace sluice::kernels
