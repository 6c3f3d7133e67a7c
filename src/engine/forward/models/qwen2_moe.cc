// Qwen1.5-MoE and Qwen2-57B-A14B. GQA with biases on q, k, v; one shared expert behind a sigmoid gate. SPEC
// §9.
#include "engine/forward/models.h"

namespace sluice::engine::models {

void qwen2_moe_attention(LayerRun& run) {
  run.norm(Role::kInputNorm);
  run.project_qkv();
  run.rotate_q_and_k();
  run.attend();
}

}  // namespace sluice::engine::models
