// Architectures as data: one table line per model_type, and for each the list of its tensors. Loading,
// checking, sizing, packing, converting and synthesising derive from that list.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/config.h"
#include "store/checkpoint.h"

namespace sluice::model {

// The purpose of a tensor; together with layer and expert it identifies the tensor.
enum class Role : std::uint8_t {
  kEmbedding,
  kFinalNorm,
  kHead,
  kInputNorm,
  kPostAttentionNorm,
  kQ,
  kK,
  kV,
  kO,
  kQBias,
  kKBias,
  kVBias,
  kOBias,
  kSinks,  // (heads)
  kQNorm,
  kKNorm,
  kQDown,
  kQDownNorm,
  kQUp,
  kKvDown,
  kKvDownNorm,
  kKvUp,  // MLA: q_a_proj … kv_b_proj
  // MLA in GGUF files, in place of kKvUp, head after head: (heads · rank, nope), which takes the nope part of
  // a query to the latent space, and (heads · value, rank).
  kKeyUp,
  kValueUp,
  kMlpGate,
  kMlpUp,
  kMlpDown,  // dense layers
  kRouter,
  kRouterBias,
  kSharedGate,
  kSharedUp,
  kSharedDown,
  kSharedExpertGate,
  kExpertGate,
  kExpertUp,
  kExpertDown,
  // Biases of all experts of a layer: (experts, rows of gate), (experts, rows of up), (experts, hidden). Kept
  // with the dense weights.
  kExpertGateBias,
  kExpertUpBias,
  kExpertDownBias,
  kEncoderFinalNorm,
  kRelativeBias,  // T5: (buckets, heads), in the first layer of a stack
  kCrossNorm,
  kCrossQ,
  kCrossK,
  kCrossV,
  kCrossO,  // a decoder's attention to the encoder's output
};
std::string_view role_name(Role role);
// Biases of experts, which are no matrices though their shape has two dimensions.
constexpr bool is_expert_bias(Role role) {
  return role == Role::kExpertGateBias || role == Role::kExpertUpBias || role == Role::kExpertDownBias;
}

// One tensor that an architecture must have. Shapes are (out, in) for matrices.
struct TensorSpec {
  std::string name;
  std::vector<std::uint64_t> shape;
  Role role = Role::kEmbedding;
  std::int32_t layer = -1;  // model layer (dense layers counted); −1: none
  std::int32_t expert = -1;
};

// The whole list for a config, in per-expert spelling and in the order of the forward pass. Error(kInvalid)
// if a shape overflows.
std::vector<TensorSpec> tensor_table(const ModelConfig& config);

// One architecture of the registry.
struct Architecture {
  std::string_view model_type;
  std::string_view source;  // SPEC section or paper
  ModelConfig (*parse)(const JsonObject& json);
  std::vector<TensorSpec> (*tensors)(const ModelConfig& config);
  // Whether this architecture is known to carry the tensor beside its own (rotary_emb.inv_freq, MTP layers, a
  // tied head).
  bool (*carries)(const ModelConfig& config, std::string_view name);
};
std::span<const Architecture> architectures();
const Architecture& find_architecture(std::string_view model_type,
                                      const std::string& config_name);  // Error(kUnsupported)

// One expert's matrices as pieces of tensors, in either spelling (one tensor per projection, or stacked 3-D).
struct ExpertPieces {
  std::uint32_t layer = 0;  // sparse layer index (dense layers not counted)
  std::uint32_t index = 0;
  // (width, hidden), (width · ActivationConfig::up_rows(), hidden), (hidden, width). Without a gate, `gate`
  // has no elements.
  store::Piece gate, up, down;
  std::vector<store::Piece> all() const;  // the existing ones, in this order
};

// A checkpoint matched with its architecture: no tensor is missing, misshapen or unknown.
struct Model {
  ModelConfig config;
  GenerationConfig generation;
  std::vector<TensorSpec> dense;      // all except the routed experts, with the checkpoint's names
  std::vector<ExpertPieces> experts;  // ascending (layer, index)
  std::vector<std::string> ignored;   // tensors that the architecture knows but does not compute with
  const TensorSpec* find(Role role,
                         std::int32_t layer = -1) const;  // dense ones; null if the architecture has none
};

// Reads config.json (and generation_config.json) and checks every tensor: Error naming the tensor if one is
// missing, extra, of another shape, or of a type that is not BF16, F16 or F32. `checkpoint` need not outlive
// the result.
Model describe_model(const store::Checkpoint& checkpoint);

}  // namespace sluice::model
