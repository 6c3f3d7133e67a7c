#include "kernels/attention/attention.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <limits>

#include <fmt/format.h>

#include "base/error.h"
#include "base/float16.h"
#include "base/machine/thread_pool.h"
#include "kernels/attention/attention_impl.h"
#include "kernels/kernel_table.h"
#include "kernels/split.h"

namespace sluice::kernels {
namespace {

void check(DType cache) {
  SLUICE_CHECK(cache == DType::kBF16 || cache == DType::kF32 || cache == DType::kI8,
               fmt::format("a cache of {}", dtype_name(cache)));
}

void check(const AttentionShape& shape, const CacheView& keys, const CacheView& values) {
  SLUICE_CHECK(shape.kv_heads > 0 && shape.heads % shape.kv_heads == 0,
               fmt::format("{} heads, {} kv heads", shape.heads, shape.kv_heads));
  for (const CacheView* cache : {&keys, &values}) {
    check(cache->dtype);
    SLUICE_CHECK(cache->dtype != DType::kI8 || cache->scales != nullptr, "a cache of codes without scales");
  }
}

CacheHead head_of(const CacheView& view, std::size_t head) {
  const std::size_t bytes = dtype_bytes(view.dtype);
  const float* scales = view.scales == nullptr
                            ? nullptr
                            : view.scales + head * cache_groups(view.head_stride) * view.scale_stride;
  return {view.data + head * view.head_stride * bytes,
          view.dtype,
          view.row_elements * bytes,
          scales,
          view.scale_stride,
          view.blocks};
}

}  // namespace

std::size_t attention_scratch_floats(const AttentionShape& shape, std::size_t positions) {
  return attention_item_floats(shape.key_dim, shape.value_dim, positions);
}

void attention(const Context& ctx, const AttentionShape& shape, const float* q, std::size_t tokens,
               std::size_t first_position, const CacheView& keys, const CacheView& values, float* out,
               float* scratch, const ScoreBias& bias, Sinks sinks) {
  check(shape, keys, values);
  const std::size_t group = shape.heads / shape.kv_heads;
  const std::size_t positions = shape.visible != 0 ? shape.visible : first_position + tokens;
  SLUICE_CHECK(bias.data == nullptr || bias.center + 1 >= first_position + tokens,
               "a bias for fewer positions");
  const std::size_t items_per_head = (tokens * group + kQueriesPerItem - 1) / kQueriesPerItem;
  const std::size_t items = shape.kv_heads * items_per_head;
  const auto kernel = kernel_table(ctx.isa).attention->item;

  const auto run_item = [&](std::size_t index, float* thread_scratch) {
    const std::size_t kv_head = index / items_per_head;
    const std::size_t first_query = index % items_per_head * kQueriesPerItem;
    AttentionItem item{};
    item.keys = head_of(keys, kv_head);
    item.values = head_of(values, kv_head);
    item.key_dim = shape.key_dim;
    item.value_dim = shape.value_dim;
    item.scale = shape.scale;
    item.queries = std::min(kQueriesPerItem, tokens * group - first_query);
    for (std::size_t i = 0; i < item.queries; ++i) {
      const std::size_t token = (first_query + i) / group;
      const std::size_t head = kv_head * group + (first_query + i) % group;
      const std::size_t row = token * shape.heads + head;
      item.q[i] = q + row * shape.key_dim;
      item.out[i] = out + row * shape.value_dim;
      item.end[i] = shape.visible != 0 ? shape.visible : first_position + token + 1;
      if (sinks != nullptr) item.sink[i] = sinks + head;
      if (bias.data != nullptr)
        item.bias[i] = bias.data + head * bias.head_stride + (bias.center - (first_position + token));
      item.begin[i] = shape.window != 0 && item.end[i] > shape.window ? item.end[i] - shape.window : 0;
    }
    kernel(item, positions, thread_scratch);
  };

  // Later tokens see more positions, so threads take items one by one. The thread affects only the scratch.
  const std::size_t cost = tokens * shape.heads * positions * (shape.key_dim + shape.value_dim);
  const std::size_t workers = cost < kSplitCost ? 1 : std::min<std::size_t>(threads(ctx), items);
  std::atomic<std::size_t> next{0};
  const auto work = [&](std::size_t worker) {
    float* thread_scratch = scratch + worker * attention_scratch_floats(shape, positions);
    for (std::size_t i = next++; i < items; i = next++) run_item(i, thread_scratch);
  };
  if (workers <= 1) {
    work(0);
  } else {
    ctx.pool->parallel_for(workers, work);
  }
}

namespace {

// Returns the scale.
float store_codes(const float* src, std::size_t n, std::byte* dst) {
  float most = 0.0f;
  bool finite = true;
  for (std::size_t i = 0; i < n; ++i) {
    finite = finite && std::isfinite(src[i]);
    most = std::max(most, std::fabs(src[i]));
  }
  // The scale is at least the smallest normal number: a scale with fewer bits would lose more than half a
  // code.
  const float scale = finite ? std::max(most / 127.0f, 0x1p-126f) : std::numeric_limits<float>::quiet_NaN();
  for (std::size_t i = 0; i < n; ++i)
    dst[i] = finite ? static_cast<std::byte>(std::lrintf(src[i] / scale)) : std::byte{0};
  return scale;
}

}  // namespace

void store_cache(const float* src, const CacheRow& row) {
  check(row.dtype);
  const std::size_t n = row.heads * row.columns;
  switch (row.dtype) {
    case DType::kF32:
      std::memcpy(row.data, src, n * sizeof(float));
      break;
    case DType::kI8: {
      float* scale = row.scales;
      for (std::size_t h = 0; h < row.heads; ++h)
        for (std::size_t c = 0; c < row.columns; c += kCacheGroup, scale += row.scale_stride) {
          const std::size_t at = h * row.columns + c;
          *scale = store_codes(src + at, std::min(kCacheGroup, row.columns - c), row.data + at);
        }
      break;
    }
    default:
      for (std::size_t i = 0; i < n; ++i) {
        const std::uint16_t word = float_to_bf16(src[i]);
        std::memcpy(row.data + 2 * i, &word, sizeof(word));
      }
  }
}

}  // namespace sluice::kernels
