// XVERSE-MoE-A4.2B. MHA; an fp32 router; every layer is sparse; shared experts without a gate. SPEC §9.
#include "engine/forward/models.h"

namespace sluice::engine::models {

void xverse_attention(LayerRun& run) {
  run.norm(Role::kInputNorm);
  run.project_qkv();
  run.rotate_q_and_k();
  run.attend();
}

}  // namespace sluice::engine::models
