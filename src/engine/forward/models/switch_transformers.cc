// Switch Transformers. A T5 encoder-decoder: biases by distance, scores without a scale, one expert per
// token. SPEC §9.
#include "engine/forward/models/models.h"

namespace sluice::engine::models {
namespace {

void feed_forward(LayerRun& run) {
  run.norm(Role::kPostAttentionNorm);
  if (run.sparse())
    run.moe_block();
  else
    run.mlp();
}

}  // namespace

void switch_transformers_keys(LayerRun& run) {
  run.norm(Role::kInputNorm);
  run.project_kv();
  run.keep_kv();
}

void switch_transformers_encoder(LayerRun& run) {
  run.norm(Role::kInputNorm);
  run.project_q();
  run.attend_both_ways();

  feed_forward(run);
}

void switch_transformers(LayerRun& run) {
  run.norm(Role::kInputNorm);
  run.project_qkv();
  run.attend();

  run.norm(Role::kCrossNorm);
  run.attend_to_encoder();

  feed_forward(run);
}

}  // namespace sluice::engine::models
