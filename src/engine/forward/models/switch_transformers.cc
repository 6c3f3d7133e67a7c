// Switch Transformers. A T5 encoder-decoder: biases by distance, scores without a scale, one expert per
// token. SPEC §9.
#include "engine/forward/models.h"

namespace sluice::engine::models {

void switch_transformers_keys(LayerRun& run) {
  run.norm(Role::kInputNorm);
  run.project_kv();
  run.keep_kv();
}

void switch_transformers_encoder_attention(LayerRun& run) {
  run.norm(Role::kInputNorm);
  run.project_q();
  run.attend_both_ways();
}

void switch_transformers_attention(LayerRun& run) {
  run.norm(Role::kInputNorm);
  run.project_qkv();
  run.attend();

  run.norm(Role::kCrossNorm);
  run.attend_to_encoder();
}

}  // namespace sluice::engine::models
