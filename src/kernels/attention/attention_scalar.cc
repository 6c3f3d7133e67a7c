// Attention in plain code, one query after the other.
#include <algorithm>
#include <cmath>

#include "kernels/attention/attention_impl.h"
#include "kernels/kernel_table.h"
#include "kernels/lanes/lanes_scalar.h"

namespace sluice::kernels {
namespace {

std::size_t row_of(const CacheHead& cache, std::size_t position) {
  if (cache.blocks == nullptr) return position;
  return cache.blocks[position / kCacheBlock] * kCacheBlock + position % kCacheBlock;
}

float score_scalar(const AttentionItem& a, std::size_t position, const float* packed) {
  const std::size_t row = row_of(a.keys, position);
  const std::byte* key = a.keys.data + row * a.keys.row_bytes;
  if (a.keys.dtype != DType::kI8) return dot_scalar(key, a.keys.dtype, a.key_dim, packed);
  float sum = 0.0f;
  for (std::size_t c = 0, g = 0; c < a.key_dim; c += kCacheGroup, ++g) {
    const float scale = a.keys.scales[g * a.keys.scale_stride + row];
    const float dot = dot_scalar(key + c, DType::kI8, std::min(kCacheGroup, a.key_dim - c), packed + c);
    sum = g == 0 ? scale * dot : std::fma(scale, dot, sum);
  }
  return sum;
}

void item_scalar(const AttentionItem& a, std::size_t, float* scratch) {
  float* packed = scratch;
  float* scores = scratch + (a.key_dim + 63) / 64 * 64;
  for (std::size_t i = 0; i < a.queries; ++i) {
    pack_scalar(a.q[i], a.key_dim, packed);
    const std::size_t n = a.end[i] - a.begin[i];
    for (std::size_t p = 0; p < n; ++p) {
      scores[p] = score_scalar(a, a.begin[i] + p, packed) * a.scale;
      if (a.bias[i] != nullptr) scores[p] += a.bias[i][a.begin[i] + p];
    }
    const float total = exp_and_sum_scalar(scores, n, a.sink[i]);
    for (std::size_t c = 0; c < a.value_dim; ++c) {
      float sum = 0.0f;
      for (std::size_t p = 0; p < n; ++p) {
        const std::size_t row = row_of(a.values, a.begin[i] + p);
        const std::byte* value = a.values.data + row * a.values.row_bytes;
        float weight = scores[p];
        if (a.values.dtype == DType::kI8)
          weight *= a.values.scales[c / kCacheGroup * a.values.scale_stride + row];
        sum = std::fma(weight, element(value, a.values.dtype, c), sum);
      }
      a.out[i][c] = sum / total;
    }
  }
}

}  // namespace

const AttentionKernels kAttentionScalar = {item_scalar};

}  // namespace sluice::kernels
