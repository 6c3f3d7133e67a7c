// Attention of one sequence over its key/value cache: GQA, MHA, and MLA in absorbed form (one
// key/value head whose keys are [c_kv, k_pe] and whose values are the c_kv part of the same row).
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/dtype.h"
#include "kernels/context.h"
#include "kernels/lanes/cache_group.h"

namespace sluice::kernels {

// Positions whose rows lie one after the other for certain, where a cache is kept in blocks.
constexpr std::size_t kCacheBlock = 32;

// Rows of cached keys or values, BF16, F32 or I8. The row of position p is
// r = blocks[p/kCacheBlock]*kCacheBlock + p%kCacheBlock, or p where there is no table of blocks.
// Row r, head h at data + (r*row_elements + h*head_stride)*bytes.
struct CacheView {
  const std::byte* data = nullptr;
  DType dtype = DType::kBF16;
  std::size_t row_elements = 0;
  std::size_t head_stride = 0;  // elements between kv heads in a row
  // For I8: the scale of group g is scales[(h*cache_groups(head_stride) + g)*scale_stride + r]. An element is
  // its code times that scale.
  const float* scales = nullptr;
  std::size_t scale_stride = 0;
  const std::uint32_t* blocks = nullptr;  // by position / kCacheBlock, for all visible positions; may be null
};

struct AttentionShape {
  std::size_t heads = 0;     // query heads
  std::size_t kv_heads = 0;  // heads % kv_heads == 0; query head h reads kv head h / (heads/kv_heads)
  std::size_t key_dim = 0;
  std::size_t value_dim = 0;
  float scale = 1.0f;
  std::size_t window = 0;   // 0: all earlier positions; w: the query at p sees positions p-w+1 … p
  std::size_t visible = 0;  // 0: causal; n: every query sees positions 0 … n-1, whatever its own
};

// A bias by head and distance, added to the scaled scores: for the query at position q and the key at p,
// data[h*head_stride + center + p − q]. Null data: no bias.
struct ScoreBias {
  const float* data = nullptr;
  std::size_t head_stride = 0;
  std::size_t center = 0;  // at least the last query's position
};

// One more score for each query head, beside those of the keys: it takes part in the softmax and has no
// value, so that the weights of the values sum to less than 1. (heads); null: none.
using Sinks = const float*;

// For query t at position first_position + t: scores over the visible positions (ascending) in the dot
// order of matmul.h, times scale, plus bias; softmax in fp32 (subtract the maximum, exp, divide at the end);
// values summed in ascending position. q (tokens, heads, key_dim), out (tokens, heads, value_dim), both
// dense. Keys and values of all visible positions must be in the cache. A query's result depends only on its
// row, its position and the cache, so chunks of any size agree bit for bit, wherever the cache's blocks lie.
// Stretches of consecutive blocks are read as one. Threads split (token, head).
// In an I8 cache, a score is fma(scale, dot of the group's codes, score) over the groups, ascending, starting
// with the first group's product; a value's weight is its softmax weight times its group's scale.
// A sink is added to the sum behind all positions.
// scratch: threads × scratch_floats(shape, positions) floats.
std::size_t attention_scratch_floats(const AttentionShape& shape, std::size_t positions);
void attention(const Context& ctx, const AttentionShape& shape, const float* q, std::size_t tokens,
               std::size_t first_position, const CacheView& keys, const CacheView& values, float* out,
               float* scratch, const ScoreBias& bias = {}, Sinks sinks = nullptr);

// Where one position is written.
struct CacheRow {
  std::byte* data = nullptr;
  DType dtype = DType::kBF16;
  std::size_t heads = 0, columns = 0;  // elements: heads × columns
  // For I8: group g of head h is at [(h*cache_groups(columns) + g)*scale_stride].
  float* scales = nullptr;
  std::size_t scale_stride = 0;
};

// Stores src (heads × columns floats): rounded to nearest even for BF16, copied for F32. For I8 a group's
// scale is its largest magnitude / 127, and its codes are src / scale, rounded to nearest even; a group with
// a number that is not finite becomes NaN.
void store_cache(const float* src, const CacheRow& row);

}  // namespace sluice::kernels
