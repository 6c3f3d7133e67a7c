// DeepSeek-V2 and V2-Lite. MLA over a compressed cache (absorbed form), YaRN, grouped or greedy routing. SPEC
// §9.
#include "engine/forward/models.h"

namespace sluice::engine::models {

void deepseek_v2_attention(LayerRun& run) {
  run.norm(Role::kInputNorm);
  run.project_mla();
  run.attend_mla();
}

}  // namespace sluice::engine::models
