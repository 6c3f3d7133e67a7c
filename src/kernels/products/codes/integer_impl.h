// What each instruction set implements for activations in codes (activation_codes.h). Plain structs, for
// files compiled with other flags.
#pragma once

#include <cstddef>
#include <type_traits>

#include "codec/slices/slice_cells.h"
#include "kernels/products/codes/sliced_matmul_impl.h"

namespace sluice::kernels {

inline constexpr float kMostActivationCode = 127.0f;
inline constexpr unsigned kDenseZero = 128;  // signed codes of 8 bits are unsigned ones less this

// Where the codes of a token are. Float: float or const float.
template <class Float>
struct CodedToken {
  using Byte = std::conditional_t<std::is_const_v<Float>, const std::byte, std::byte>;
  CodedToken(Float* token, std::size_t groups)
      : codes(reinterpret_cast<Byte*>(token)),
        scales(token + groups * codec::kCellColumns / sizeof(float)),
        minus_sums(scales + groups) {}
  Byte* codes;
  Float *scales, *minus_sums;
};

// `x` of the arguments is the output of code_activations().
struct IntegerKernels {
  SlicedKernels slices;
  RowsKernel dense;  // matrices of int8_matmul_impl.h
};

}  // namespace sluice::kernels
