#include "kernels/gpu/dense/attention_chunk.h"

#include <algorithm>
#include <cstdint>

#include <fmt/format.h>

#include "base/error.h"

namespace sluice::kernels::gpu {

AttentionRows attention_chunk(const op::Attention& op, std::size_t first_kv_head, std::size_t first_query,
                              std::size_t most, float* scores) {
  const AttentionShape& shape = op.shape;
  const std::size_t group = shape.heads / shape.kv_heads;
  const auto word = [](std::size_t number) { return static_cast<std::uint32_t>(number); };
  AttentionRows rows{.heads = word(shape.heads),
                     .group = word(group),
                     .first_kv_head = word(first_kv_head),
                     .kv_heads = word(shape.kv_heads - first_kv_head),
                     .first_query = word(first_query),
                     .queries = word(most),
                     .first_position = word(op.first_position),
                     .visible = word(shape.visible),
                     .window = word(shape.window),
                     .first_block = 0,
                     .blocks = 0,
                     .scores = scores};
  const auto room = [&] {
    rows.first_block = rows.seen(0).begin / AttentionRows::kBlock;
    rows.blocks = (rows.seen(rows.queries - 1).end + AttentionRows::kBlock - 1) / AttentionRows::kBlock -
                  rows.first_block;
    return op.scratch_floats / rows.row_floats();  // rows
  };
  while (room() < std::uint64_t{rows.kv_heads} * rows.queries && rows.queries > 1)
    rows.queries = rows.queries > 8 ? rows.queries / 8 * 4 : rows.queries / 2;
  SLUICE_CHECK(room() > 0,
               fmt::format("{} scores, {} floats of scratch", rows.row_floats(), op.scratch_floats));
  rows.kv_heads = word(std::min<std::size_t>(rows.kv_heads, room()));
  return rows;
}

}  // namespace sluice::kernels::gpu
