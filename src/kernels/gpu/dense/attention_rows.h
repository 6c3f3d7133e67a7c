// Query rows that are worked on together, and what each of them sees.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/attention/attention.h"
#include "kernels/gpu/warp.h"

namespace sluice::kernels::gpu {

struct PositionRange {
  std::uint32_t begin, end;
};

// Some queries of some kv heads. The queries of a kv head are in the order (token, head of the group), as in
// attention_impl.h. Each has a row of scores: those of its blocks of positions, then the largest of each
// block.
struct AttentionRows {
  std::uint32_t heads, group;             // query heads: all, of a kv head
  std::uint32_t first_kv_head, kv_heads;  // these take part
  std::uint32_t first_query, queries;     // queries of each kv head
  std::uint32_t first_position, visible, window;
  std::uint32_t first_block, blocks;  // blocks of positions that any of them sees
  float* scores;

  static constexpr std::uint32_t kBlock = kCacheBlock;
  static_assert(kBlock == 32, "a lane for each position of a block");

  SLUICE_GPU_HOST std::uint64_t row_floats() const { return std::uint64_t{blocks} * (kBlock + 1); }
  SLUICE_GPU_HOST std::uint32_t token(std::uint32_t query) const { return (first_query + query) / group; }
  SLUICE_GPU_HOST PositionRange seen(std::uint32_t query) const {
    const std::uint32_t end = visible != 0 ? visible : first_position + token(query) + 1;
    return {window != 0 && end > window ? end - window : 0, end};
  }
  SLUICE_GPU_HOST std::uint32_t head(std::uint32_t kv_head, std::uint32_t query) const {
    return kv_head * group + (first_query + query) % group;
  }
  SLUICE_GPU_HOST std::uint64_t row(std::uint32_t kv_head, std::uint32_t query) const {
    return std::uint64_t{token(query)} * heads + head(kv_head, query);
  }
  SLUICE_GPU_HOST float* row_scores(std::uint32_t kv_head, std::uint32_t query) const {
    return scores + (std::uint64_t{kv_head - first_kv_head} * queries + query) * row_floats();
  }
  SLUICE_GPU_HOST float* row_largest(std::uint32_t kv_head, std::uint32_t query) const {
    return row_scores(kv_head, query) + std::uint64_t{blocks} * kBlock;
  }
};

// A CacheView that kernels can read.
struct AttentionCache {
  const std::byte* data;
  std::uint64_t row_bytes;
  std::uint32_t head_bytes, groups;  // from one head to the next
  const float* scales;
  std::uint64_t scale_stride;
  const std::uint32_t* blocks;

  // The row of a block's first position.
  SLUICE_GPU_HOST std::uint64_t block_row(std::uint32_t block) const {
    return std::uint64_t{blocks == nullptr ? block : blocks[block]} * kCacheBlock;
  }
};

}  // namespace sluice::kernels::gpu
