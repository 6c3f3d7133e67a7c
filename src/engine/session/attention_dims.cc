#include "engine/session/attention_dims.h"

#include <cmath>

#include "engine/session/rope_table.h"

namespace sluice::engine {

AttentionDims::AttentionDims(const model::AttentionConfig& config) {
  heads = config.heads;
  if (config.kind == model::AttentionKind::kMla) {
    kv_heads = 1;
    query_dim = config.nope_dim + config.rope_dim;
    key_dim = config.kv_lora_rank + config.rope_dim;
    cache_value_dim = config.kv_lora_rank;
    value_dim = config.value_dim;
    key_row = key_dim;
    value_row = 0;
    // SPEC §9: YaRN's mscale_all_dim enters the scale squared.
    const double m = yarn_mscale(config.rope.scaling == model::RopeScaling::kYarn ? config.rope.factor : 1.0,
                                 config.rope.mscale_all_dim);
    scale = static_cast<float>(std::pow(static_cast<double>(query_dim), -0.5) * m * m);
  } else {
    kv_heads = config.kv_heads;
    query_dim = key_dim = cache_value_dim = value_dim = config.head_dim;
    key_row = value_row = kv_heads * key_dim;
    scale = config.scaled ? static_cast<float>(std::pow(static_cast<double>(key_dim), -0.5)) : 1.0f;
  }
}

}  // namespace sluice::engine
