// The query rows that are worked on at a time.
#pragma once

#include <cstddef>

#include "kernels/gpu/dense/attention_rows.h"
#include "kernels/ops/ops.h"

namespace sluice::kernels::gpu {

// As many queries from `first_query` on as there is room for, `most` of each kv head; of all heads from
// `first_kv_head` on, or of some where there is not even room for one of each.
AttentionRows attention_chunk(const op::Attention& op, std::size_t first_kv_head, std::size_t first_query,
                              std::size_t most, float* scores);

}  // namespace sluice::kernels::gpu
