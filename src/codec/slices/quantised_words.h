// Reads the weights of a checkpoint as numbers, 32 of a row at a time, for the coders of quantised matrices.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>

#include "base/dtype.h"
#include "base/error.h"
#include "base/float16.h"
#include "codec/slices/scale_word.h"

namespace sluice::codec {

// The arithmetic type for weights of each type. BF16 and F16 weights divide by a binary16 scale in float:
// such a quotient is never so near to a half of an odd number, without being one, that rounding it to float
// would move it there, because 8 or 11 bits by 11 leave at least 2^-13 between (quotients are compared below
// 2^9) and floats 2^-15. F32 needs double.
template <class Word, class RealType, RealType (*kReal)(Word)>
struct Words {
  using Real = RealType;
  static constexpr std::size_t kBytes = sizeof(Word);
  static Real load(const std::byte* at) {
    Word word{};
    std::memcpy(&word, at, sizeof(word));
    return kReal(word);
  }
};
inline double float_to_double(float value) { return value; }
using Bf16Words = Words<std::uint16_t, float, bf16_to_float>;
using Fp16Words = Words<std::uint16_t, float, fp16_to_float>;
using Fp32Words = Words<float, double, float_to_double>;

// Calls code(Bf16Words{}), or with the words of another `dtype`.
template <class Code>
void with_words(DType dtype, const Code& code) {
  switch (dtype) {
    case DType::kBF16:
      return code(Bf16Words{});
    case DType::kF16:
      return code(Fp16Words{});
    case DType::kF32:
      return code(Fp32Words{});
    default:
      SLUICE_CHECK(false, std::string(dtype_name(dtype)));
  }
}

// Loads `count` ≤ `size` weights and fills the rest with 0. False if a weight is infinite or NaN.
template <class Words>
bool load_weights(const std::byte* from, std::size_t count, std::size_t size, typename Words::Real* weights) {
  using Real = typename Words::Real;
  for (std::size_t i = 0; i < count; ++i) weights[i] = Words::load(from + i * Words::kBytes);
  for (std::size_t i = count; i < size; ++i) weights[i] = 0;
  Real sum = 0;  // NaN if a weight is infinite or NaN; else 0
  for (std::size_t i = 0; i < count; ++i) sum += weights[i] * 0;
  return sum == 0;
}

// Throws the error for the first weight that is infinite or NaN, by row and column.
template <class Real>
[[noreturn]] void throw_not_finite(const Real* weights, std::uint64_t row, std::uint64_t column) {
  while (std::isfinite(*weights)) ++weights, ++column;
  throw not_finite(static_cast<double>(*weights))
      .in("row " + std::to_string(row) + ", column " + std::to_string(column));
}

}  // namespace sluice::codec
