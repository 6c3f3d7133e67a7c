// What each instruction set implements for attention.h. Plain structs, for files compiled with other flags.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/dtype.h"
#include "kernels/attention/attention.h"
#include "kernels/lanes/cache_group.h"

namespace sluice::kernels {

// The queries of one kv head, in the order (token, head of the group), are taken four at a time: one item.
// They share every key and value that they read.
constexpr std::size_t kQueriesPerItem = 4;

struct CacheHead {              // one kv head of a CacheView
  const std::byte* data;        // row 0
  DType dtype;                  // BF16, F32 or I8
  std::size_t row_bytes;        // from one row to the next
  const float* scales;          // for I8: of row 0, group 0
  std::size_t scale_stride;     // from one group to the next
  const std::uint32_t* blocks;  // as in CacheView
};

// Positions whose scaled numbers stay in L1, for a cache with scales.
constexpr std::size_t kScaledPositions = 256;

struct AttentionItem {
  CacheHead keys, values;
  std::size_t key_dim, value_dim;
  float scale;
  std::size_t queries;                 // ≤ kQueriesPerItem
  const float* q[kQueriesPerItem];     // (key_dim)
  float* out[kQueriesPerItem];         // (value_dim)
  std::size_t begin[kQueriesPerItem];  // visible positions, ascending with the query
  std::size_t end[kQueriesPerItem];
  const float* bias[kQueriesPerItem];  // by position, added to the scaled scores; null: no bias
  const float* sink[kQueriesPerItem];  // one more score; null: none
};

// Floats of scratch: packed queries, then a row of scores each, then a row of sums each.
constexpr std::size_t attention_item_floats(std::size_t key_dim, std::size_t value_dim,
                                            std::size_t positions) {
  return kQueriesPerItem * ((key_dim + 63) / 64 * 64 + (positions + 15) / 16 * 16 + value_dim);
}

struct AttentionKernels {
  // `positions`: at least the number that any query sees; the length of a row of scores.
  void (*item)(const AttentionItem& item, std::size_t positions, float* scratch);
};

}  // namespace sluice::kernels
