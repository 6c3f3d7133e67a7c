// Attention in plain code, one query after the other.
#include <cmath>

#include "kernels/kernel_table.h"
#include "kernels/lanes_scalar.h"

namespace sluice::kernels {
namespace {

void item_scalar(const AttentionItem& a, std::size_t, float* scratch) {
  float* packed = scratch;
  float* scores = scratch + (a.key_dim + 63) / 64 * 64;
  for (std::size_t i = 0; i < a.queries; ++i) {
    pack_scalar(a.q[i], a.key_dim, packed);
    const std::size_t n = a.end[i] - a.begin[i];
    for (std::size_t p = 0; p < n; ++p) {
      const std::byte* key = a.keys.data + (a.begin[i] + p) * a.keys.row_bytes;
      scores[p] = dot_scalar(key, a.keys.dtype, a.key_dim, packed) * a.scale;
      if (a.bias[i] != nullptr) scores[p] += a.bias[i][a.begin[i] + p];
    }
    const float total = exp_and_sum_scalar(scores, n);
    for (std::size_t c = 0; c < a.value_dim; ++c) {
      float sum = 0.0f;
      for (std::size_t p = 0; p < n; ++p) {
        const std::byte* value = a.values.data + (a.begin[i] + p) * a.values.row_bytes;
        sum = std::fma(scores[p], element(value, a.values.dtype, c), sum);
      }
      a.out[i][c] = sum / total;
    }
  }
}

}  // namespace

const AttentionKernels kAttentionScalar = {item_scalar};

}  // namespace sluice::kernels
