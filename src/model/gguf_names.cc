#include "model/gguf_names.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <iterator>

namespace sluice::model {
namespace {

constexpr std::string_view kBlocks = "blk.";

// A role and the name of its tensor, without "blk.N.".
struct RoleName {
  Role role;
  std::string_view name;
};
constexpr RoleName kNames[] = {
    {Role::kEmbedding, "token_embd.weight"},
    {Role::kFinalNorm, "output_norm.weight"},
    {Role::kHead, "output.weight"},
    {Role::kInputNorm, "attn_norm.weight"},
    {Role::kQ, "attn_q.weight"},
    {Role::kK, "attn_k.weight"},
    {Role::kV, "attn_v.weight"},
    {Role::kO, "attn_output.weight"},
    {Role::kQBias, "attn_q.bias"},
    {Role::kKBias, "attn_k.bias"},
    {Role::kVBias, "attn_v.bias"},
    {Role::kOBias, "attn_output.bias"},
    {Role::kSinks, "attn_sinks.weight"},
    {Role::kQNorm, "attn_q_norm.weight"},
    {Role::kKNorm, "attn_k_norm.weight"},
    {Role::kQDown, "attn_q_a.weight"},
    {Role::kQDownNorm, "attn_q_a_norm.weight"},
    {Role::kQUp, "attn_q_b.weight"},
    {Role::kKvDown, "attn_kv_a_mqa.weight"},
    {Role::kKvDownNorm, "attn_kv_a_norm.weight"},
    {Role::kKvUp, "attn_kv_b.weight"},
    {Role::kKeyUp, "attn_k_b.weight"},
    {Role::kValueUp, "attn_v_b.weight"},
    {Role::kMlpGate, "ffn_gate.weight"},
    {Role::kMlpUp, "ffn_up.weight"},
    {Role::kMlpDown, "ffn_down.weight"},
    {Role::kRouter, "ffn_gate_inp.weight"},
    {Role::kRouterBias, "ffn_gate_inp.bias"},
    {Role::kSharedGate, "ffn_gate_shexp.weight"},
    {Role::kSharedUp, "ffn_up_shexp.weight"},
    {Role::kSharedDown, "ffn_down_shexp.weight"},
    {Role::kSharedExpertGate, "ffn_gate_inp_shexp.weight"},
    {Role::kExpertGate, "ffn_gate_exps.weight"},
    {Role::kExpertUp, "ffn_up_exps.weight"},
    {Role::kExpertDown, "ffn_down_exps.weight"},
    {Role::kExpertGateBias, "ffn_gate_exps.bias"},
    {Role::kExpertUpBias, "ffn_up_exps.bias"},
    {Role::kExpertDownBias, "ffn_down_exps.bias"},
};

// The layer of "blk.N.…"; empty for another name.
std::optional<std::uint32_t> layer_of(std::string_view name) {
  if (!name.starts_with(kBlocks)) return std::nullopt;
  std::uint32_t layer = 0;
  const char* const begin = name.data() + kBlocks.size();
  const auto [end, error] = std::from_chars(begin, name.data() + name.size(), layer);
  if (error != std::errc() || end == name.data() + name.size() || *end != '.') return std::nullopt;
  return layer;
}

}  // namespace

std::string gguf_name(const GgufArchitecture& architecture, Role role, std::int32_t layer) {
  const std::string prefix = layer < 0 ? std::string() : fmt::format("{}{}.", kBlocks, layer);
  if (role == Role::kPostAttentionNorm) return fmt::format("{}{}.weight", prefix, architecture.expert_norm);
  const auto* const found = std::ranges::find(kNames, role, &RoleName::role);
  return found == std::end(kNames) ? std::string() : prefix + std::string(found->name);
}

bool gguf_carries(const ModelConfig& config, std::string_view name) {
  for (const std::string_view other : {"v.", "mm.", "a."})  // pictures and sound
    if (name.starts_with(other)) return true;
  const std::optional<std::uint32_t> layer = layer_of(name);
  if (!layer) return false;
  return name.find(".nextn.") != std::string_view::npos ||
         (*layer >= config.layers && *layer < config.layers + config.mtp_layers);
}

}  // namespace sluice::model
