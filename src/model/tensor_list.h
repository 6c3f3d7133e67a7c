// Builds an architecture's tensor table in the order of the forward pass. The names are those of Hugging
// Face's decoders; arch_*.cc say which parts an architecture has and how it names its experts.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "model/architecture.h"

namespace sluice::model {

// Names of an MLP's projections. An MLP without a gate has only up and down.
struct MlpNames {
  std::string_view gate = "gate_proj", up = "up_proj", down = "down_proj";
};

class TensorList {
 public:
  explicit TensorList(const ModelConfig& config);  // config must outlive this

  void embedding();                       // model.embed_tokens.weight (vocab, hidden)
  void enter_layer(std::uint32_t layer);  // later names are under model.layers.<layer>.
  void input_norm();                      // input_layernorm.weight (hidden)
  void gqa();                          // self_attn.{q,k,v,o}_proj, biases, norms and sinks as the config says
  void mla();                          // self_attn.{q_a_proj, …, kv_b_proj, o_proj}
  void post_attention_norm();          // post_attention_layernorm.weight (hidden)
  void dense_mlp();                    // mlp.{gate,up,down}_proj.weight, width dense_width
  void router(std::string_view name);  // <name>.weight (experts, hidden), and <name>.bias if it has one
  void experts(std::string_view prefix,
               const MlpNames& names = {});  // <prefix>.<expert>.<projection>.weight; no dot behind "_"
  void dense_mlp(std::string_view prefix, const MlpNames& names);  // <prefix>.<projection>.weight
  // <prefix>.<projection>.weight, width shared_width; lists nothing if that is 0.
  void shared_experts(std::string_view prefix);
  void shared_expert_gate(std::string_view name);  // <name>.weight (1, hidden)
  void final_norm();                               // model.norm.weight (hidden)
  void head();                                     // lm_head.weight (vocab, hidden); lists nothing if tied

  // For families with their own names: later names are under `prefix` and belong to `layer` (-1: none).
  void enter(std::string prefix, std::int32_t layer);
  void add(Role role, std::string_view name, std::vector<std::uint64_t> shape);

  std::vector<TensorSpec> take() { return std::move(specs_); }

 private:
  void mlp(std::string_view prefix, const MlpNames& names, std::uint64_t width, Role gate, Role up,
           Role down);

  const ModelConfig& config_;
  std::uint64_t bytes_ = 0;  // bytes of all listed tensors, at four bytes per element
  std::string prefix_;
  std::int32_t layer_ = -1, expert_ = -1;
  std::vector<TensorSpec> specs_;
};

// Whether the name is a tensor that old or complete exports hold and no forward pass reads: saved RoPE
// frequencies, a head that is tied to the embedding, layers for multi-token prediction.
bool carries_common(const ModelConfig& config, std::string_view name);

}  // namespace sluice::model
