// OLMoE. q and k are normed as whole projections, then q, k and v are clamped; every layer is sparse. SPEC
// §9.
#include "engine/forward/models.h"

namespace sluice::engine::models {

void olmoe_attention(LayerRun& run) {
  run.norm(Role::kInputNorm);
  run.project_qkv();
  run.norm_q_and_k_whole();
  run.clamp_qkv();
  run.rotate_q_and_k();
  run.attend();
}

}  // namespace sluice::engine::models
