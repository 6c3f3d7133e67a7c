#include "model/architecture.h"

#include <array>

#include "base/error.h"

namespace sluice::model {

// Each arch_*.cc has one line here and one in the table.
extern const Architecture kQwen2Moe;
extern const Architecture kQwen3Moe;
extern const Architecture kDeepseek;
extern const Architecture kDeepseekV2;
extern const Architecture kMixtral;
extern const Architecture kXverse;
extern const Architecture kOlmoe;
extern const Architecture kSwitchTransformers;
extern const Architecture kGptOss;

std::span<const Architecture> architectures() {
  static const std::array table = {kQwen2Moe, kQwen3Moe, kDeepseek,           kDeepseekV2, kMixtral,
                                   kXverse,   kOlmoe,    kSwitchTransformers, kGptOss};
  return table;
}

const Architecture& find_architecture(std::string_view model_type, const std::string& config_name) {
  std::string known;
  for (const Architecture& architecture : architectures()) {
    if (architecture.model_type == model_type) return architecture;
    known.append(known.empty() ? "" : ", ").append(architecture.model_type);
  }
  std::string shown(model_type.substr(0, 80));
  for (char& c : shown) {
    if (c < ' ' || c > '~') c = '?';  // file content must not reach a terminal unchanged
  }
  throw Error(ErrorKind::kUnsupported, "no such architecture here")
      .in(config_name + ": model_type")
      .expected("one of " + known)
      .found("\"" + shown + "\"")
      .fix("use a model of one of these kinds");
}

std::vector<TensorSpec> tensor_table(const ModelConfig& config) {
  return find_architecture(config.model_type, "config").tensors(config);
}

std::vector<store::Piece> ExpertPieces::all() const {
  if (gate.elements == 0) return {up, down};
  return {gate, up, down};
}

std::string_view role_name(Role role) {
  switch (role) {
    case Role::kEmbedding:
      return "embedding";
    case Role::kFinalNorm:
      return "final_norm";
    case Role::kHead:
      return "head";
    case Role::kInputNorm:
      return "input_norm";
    case Role::kPostAttentionNorm:
      return "post_attention_norm";
    case Role::kQ:
      return "q";
    case Role::kK:
      return "k";
    case Role::kV:
      return "v";
    case Role::kO:
      return "o";
    case Role::kQBias:
      return "q_bias";
    case Role::kKBias:
      return "k_bias";
    case Role::kVBias:
      return "v_bias";
    case Role::kOBias:
      return "o_bias";
    case Role::kSinks:
      return "sinks";
    case Role::kQNorm:
      return "q_norm";
    case Role::kKNorm:
      return "k_norm";
    case Role::kQDown:
      return "q_down";
    case Role::kQDownNorm:
      return "q_down_norm";
    case Role::kQUp:
      return "q_up";
    case Role::kKvDown:
      return "kv_down";
    case Role::kKvDownNorm:
      return "kv_down_norm";
    case Role::kKvUp:
      return "kv_up";
    case Role::kKeyUp:
      return "key_up";
    case Role::kValueUp:
      return "value_up";
    case Role::kMlpGate:
      return "mlp_gate";
    case Role::kMlpUp:
      return "mlp_up";
    case Role::kMlpDown:
      return "mlp_down";
    case Role::kRouter:
      return "router";
    case Role::kRouterBias:
      return "router_bias";
    case Role::kSharedGate:
      return "shared_gate";
    case Role::kSharedUp:
      return "shared_up";
    case Role::kSharedDown:
      return "shared_down";
    case Role::kSharedExpertGate:
      return "shared_expert_gate";
    case Role::kExpertGate:
      return "expert_gate";
    case Role::kExpertUp:
      return "expert_up";
    case Role::kExpertDown:
      return "expert_down";
    case Role::kExpertGateBias:
      return "expert_gate_bias";
    case Role::kExpertUpBias:
      return "expert_up_bias";
    case Role::kExpertDownBias:
      return "expert_down_bias";
    case Role::kEncoderFinalNorm:
      return "encoder_final_norm";
    case Role::kRelativeBias:
      return "relative_bias";
    case Role::kCrossNorm:
      return "cross_norm";
    case Role::kCrossQ:
      return "cross_q";
    case Role::kCrossK:
      return "cross_k";
    case Role::kCrossV:
      return "cross_v";
    case Role::kCrossO:
      return "cross_o";
  }
  SLUICE_CHECK(false, std::to_string(static_cast<int>(role)));
  return "";
}

}  // namespace sluice::model
