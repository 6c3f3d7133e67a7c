// The order of sums of matmul.h in plain code: the oracle of every instruction set.
#include <cmath>
#include <cstdint>
#include <cstring>

#include "base/float16.h"
#include "kernels/kernel_table.h"
#include "kernels/lanes/lanes_scalar.h"
#include "kernels/products/words/matmul.h"
#include "kernels/products/words/matmul_impl.h"

namespace sluice::kernels {

float element(const std::byte* data, DType dtype, std::size_t i) {
  if (dtype == DType::kF32) {
    float value;
    std::memcpy(&value, data + 4 * i, sizeof(value));
    return value;
  }
  if (dtype == DType::kI8) return static_cast<float>(static_cast<std::int8_t>(data[i]));
  std::uint16_t word;
  std::memcpy(&word, data + 2 * i, sizeof(word));
  return dtype == DType::kBF16 ? bf16_to_float(word) : fp16_to_float(word);
}

float sum_tree(Lanes lanes) {
  for (std::size_t step = 8; step > 0; step /= 2) {
    for (std::size_t l = 0; l < step; ++l) lanes[l] += lanes[l + step];
  }
  return lanes[0];
}

void pack_scalar(const float* x, std::size_t cols, float* packed) {
  for (std::size_t half = 0; half < arranged_floats(cols); half += 32) {
    for (std::size_t i = 0; i < 32; ++i) {
      const std::size_t c = half + 2 * (i % 16) + i / 16;
      packed[half + i] = c < cols ? x[c] : 0.0f;
    }
  }
}

float dot_scalar(const std::byte* row, DType dtype, std::size_t cols, const float* packed) {
  Lanes lanes{};
  for (std::size_t half = 0; half < arranged_floats(cols); half += 32) {
    for (std::size_t i = 0; i < 32; ++i) {
      const std::size_t c = half + 2 * (i % 16) + i / 16;
      const float weight = c < cols ? element(row, dtype, c) : 0.0f;
      lanes[i % 16] = std::fma(weight, packed[half + i], lanes[i % 16]);
    }
  }
  return sum_tree(lanes);
}

namespace {

template <DType kType>
void rows_scalar(const ProductArgs& a, std::size_t row_begin, std::size_t row_end) {
  for (std::size_t r = row_begin; r < row_end; ++r) {
    for (std::size_t t = 0; t < a.tokens; ++t) {
      const float sum = dot_scalar(a.planes[0] + r * a.row_bytes, kType, a.columns, a.x + t * a.x_stride);
      a.y[t * a.y_stride + r] = a.bias == nullptr ? sum : sum + a.bias[r];
    }
  }
}

template <DType kType>
void transposed_scalar(const TransposedArgs& a, std::size_t token_begin, std::size_t token_end,
                       std::size_t col_begin, std::size_t col_end) {
  for (std::size_t t = token_begin; t < token_end; ++t) {
    for (std::size_t r = 0; r < a.rows; ++r) {
      for (std::size_t c = col_begin; c < col_end; ++c) {
        float& y = a.y[t * a.y_stride + c];
        y = std::fma(a.x[t * a.x_stride + r], element(a.weights, kType, r * a.columns + c), y);
      }
    }
  }
}

template <DType kType>
constexpr WordKernels kWords = {rows_scalar<kType>, transposed_scalar<kType>};

}  // namespace

const MatmulKernels kMatmulScalar = {pack_scalar, kWords<DType::kBF16>, kWords<DType::kF16>,
                                     kWords<DType::kF32>};

}  // namespace sluice::kernels
