// deepseek-moe-16b. MHA; the first layers are dense; shared experts without a gate. SPEC §9.
#include "engine/forward/models.h"

namespace sluice::engine::models {

void deepseek_attention(LayerRun& run) {
  run.norm(Role::kInputNorm);
  run.project_qkv();
  run.rotate_q_and_k();
  run.attend();
}

}  // namespace sluice::engine::models
