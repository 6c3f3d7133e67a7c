// Mixtral 8x7B and 8x22B. GQA, optional sliding window; every layer is sparse; no shared expert. SPEC §9.
#include "engine/forward/models.h"

namespace sluice::engine::models {

void mixtral_attention(LayerRun& run) {
  run.norm(Role::kInputNorm);
  run.project_qkv();
  run.rotate_q_and_k();
  run.attend();
}

}  // namespace sluice::engine::models
