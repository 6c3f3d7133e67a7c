// Qwen3-30B-A3B and its family. GQA with an explicit head_dim; q and k are normed head by head before RoPE.
// SPEC §9.
#include "engine/forward/models.h"

namespace sluice::engine::models {

void qwen3_moe_attention(LayerRun& run) {
  run.norm(Role::kInputNorm);
  run.project_qkv();
  run.norm_q_and_k_per_head();
  run.rotate_q_and_k();
  run.attend();
}

}  // namespace sluice::engine::models
