// attention() as launches: scores, then sums of values, of as many query rows at a time as there is room for.
#pragma once

#include <cstdint>
#include <span>

#include "base/error.h"
#include "kernels/gpu/dense/attention_chunk.h"
#include "kernels/gpu/dense/scores-inl.h"
#include "kernels/gpu/dense/values-inl.h"
#include "kernels/gpu/place.h"
#include "kernels/ops/ops.h"

namespace sluice::kernels::gpu {

// Calls f(element type).
template <class F>
void with_cache_element(DType dtype, const F& f) {
  if (dtype == DType::kBF16) return f(CacheBf16{});
  if (dtype == DType::kF32) return f(CacheF32{});
  SLUICE_CHECK(dtype == DType::kI8, "a cache of another type");
  f(CacheI8{});
}

template <class Launcher>
AttentionCache attention_cache(Launcher& launcher, const device::Access& access, const CacheRows& cache,
                               std::size_t positions) {
  SLUICE_CHECK(cache.dtype != DType::kI8 || cache.scales, "a cache of codes without scales");
  SLUICE_CHECK(kCacheBlock * cache.row_bytes() <= ~std::uint32_t{0}, "rows of a cache are too long");
  return {.data = bytes_at(access, cache.data, cache.data_bytes()),
          .row_bytes = cache.row_bytes(),
          .head_bytes = static_cast<std::uint32_t>(cache.row_bytes() / cache.row_elements * cache.columns),
          .groups = static_cast<std::uint32_t>(cache_groups(cache.columns)),
          .scales = floats_at(access, {cache.scales}, cache.scale_floats()),
          .scale_stride = cache.scales ? cache.rows : 0,
          .blocks = cache.blocks == nullptr
                        ? nullptr
                        : launcher.upload(
                              access, std::span(cache.blocks, (positions + kCacheBlock - 1) / kCacheBlock))};
}

template <class Element, class Launcher>
void launch_scores(Launcher& launcher, const device::Access& access, const ScoresArgs& args) {
  const auto start = [&]<class Kernel>(Kernel) {
    launcher.template launch<Kernel>(access, Kernel::warps(args.rows), args);
  };
  const auto aligned = [](const void* p) { return reinterpret_cast<std::uintptr_t>(p) % 16 == 0; };
  const bool whole = args.key_dim % 32 == 0 && args.keys.row_bytes % 16 == 0 &&
                     args.keys.head_bytes % 16 == 0 && aligned(args.keys.data) && aligned(args.q);
  const bool one = args.rows.queries == 1;
  if (whole && one) return start(ScoresKernel<Element, true, 1>{});
  if (whole) return start(ScoresKernel<Element, true, 4>{});
  if (one) return start(ScoresKernel<Element, false, 1>{});
  start(ScoresKernel<Element, false, 4>{});
}

template <class Launcher>
void run(Launcher& launcher, const device::Access& access, const op::Attention& op) {
  const AttentionShape& shape = op.shape;
  SLUICE_CHECK(shape.kv_heads > 0 && shape.heads % shape.kv_heads == 0,
               "heads that kv heads do not share alike");
  SLUICE_CHECK(!op.bias || op.bias_center + 1 >= op.first_position + op.tokens, "a bias for fewer positions");
  const std::size_t positions = shape.visible != 0 ? shape.visible : op.first_position + op.tokens;
  SLUICE_CHECK(positions <= 0x7fffffffu, "too many positions");
  const std::size_t queries = op.tokens * (shape.heads / shape.kv_heads);
  ScoresArgs scores{.rows = {},
                    .keys = attention_cache(launcher, access, op.keys, positions),
                    .key_dim = static_cast<std::uint32_t>(shape.key_dim),
                    .scale = shape.scale,
                    .q = floats_at(access, op.q, op.tokens * shape.heads * shape.key_dim),
                    .bias = floats_at(access, op.bias, shape.heads * op.bias_stride),
                    .bias_stride = op.bias_stride,
                    .bias_center = op.bias_center};
  ValuesArgs values{.rows = {},
                    .values = attention_cache(launcher, access, op.values, positions),
                    .value_dim = static_cast<std::uint32_t>(shape.value_dim),
                    .sinks = vector_at(access, op.sinks),
                    .out = floats_at(access, op.out, op.tokens * shape.heads * shape.value_dim)};
  float* const scratch = floats_at(access, op.scratch, op.scratch_floats);
  std::size_t first_query = 0;
  while (first_query < queries) {
    std::size_t count = queries - first_query;  // the same of all kv heads
    for (std::size_t kv_head = 0; kv_head < shape.kv_heads; kv_head += scores.rows.kv_heads) {
      const AttentionRows rows = attention_chunk(op, kv_head, first_query, count, scratch);
      count = rows.queries;
      scores.rows = values.rows = rows;
      with_cache_element(op.keys.dtype,
                         [&]<class Element>(Element) { launch_scores<Element>(launcher, access, scores); });
      with_cache_element(op.values.dtype, [&]<class Element>(Element) {
        using Kernel = ValuesKernel<Element>;
        launcher.template launch<Kernel>(access, Kernel::warps(values), values);
      });
    }
    first_query += count;
  }
}

}  // namespace sluice::kernels::gpu
