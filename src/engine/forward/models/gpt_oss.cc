// gpt-oss-20b and 120b. GQA with biases and a learned score a head beside those of the keys, over a window in
// every other layer; every layer is sparse. MoeConfig and ActivationConfig say the rest.
#include "engine/forward/models.h"

namespace sluice::engine::models {

void gpt_oss_attention(LayerRun& run) {
  run.norm(Role::kInputNorm);
  run.project_qkv();
  run.rotate_q_and_k();
  run.attend();
}

}  // namespace sluice::engine::models
