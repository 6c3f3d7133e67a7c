// Reads the fields of config.json that architectures share. Each arch_*.cc calls these functions from its
// parse() and adds its own fields. Every function names file, field, expected and found in its Error.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "model/config.h"

namespace sluice::model {

// The largest sizes that a config may name: far above every published model, and small enough that the
// bytes of a whole model (checked in config_reader.cc) fit in 63 bits, so that code behind the parser need
// not think of overflow.
inline constexpr std::int64_t kMaxLayers = 1024;
inline constexpr std::int64_t kMaxExperts = 8192;          // in one layer
inline constexpr std::int64_t kMaxExpertsTotal = 1 << 18;  // in all layers
inline constexpr std::int64_t kMaxHidden = 1 << 18;
inline constexpr std::int64_t kMaxWidth = 1 << 20;  // an MLP's
inline constexpr std::int64_t kMaxHeads = 4096;
inline constexpr std::int64_t kMaxHeadDim = 4096;
inline constexpr std::int64_t kMaxRank = 1 << 18;  // for MLA's low-rank projections
inline constexpr std::int64_t kMaxVocab = 1 << 26;
inline constexpr std::int64_t kMaxPositions = INT32_MAX;

// A size ≥ 1. Without a fallback the field is required.
std::uint32_t read_size(const JsonObject& json, std::string_view key, std::int64_t max);
std::uint32_t read_size_or(const JsonObject& json, std::string_view key, std::uint32_t fallback,
                           std::int64_t max);

// Throws Error(kUnsupported): the value is legal, but no code here computes with it.
[[noreturn]] void unsupported(const JsonObject& json, std::string_view key, std::string_view expected);
// Throws unsupported() unless the string is absent or `only`.
void require_string(const JsonObject& json, std::string_view key, std::string_view only);
// Throws unsupported() if the boolean is true.
void require_false(const JsonObject& json, std::string_view key);

// The values that Hugging Face's configuration class uses for missing fields.
struct DecoderDefaults {
  std::uint32_t max_positions = 2048;
  double rms_eps = 1e-6;
  std::vector<tokenizer::TokenId> bos = {}, eos = {};
  bool window = false;              // an absent sliding_window has a default width
  std::string_view quantised = {};  // the quant_method that weights may have; empty: none
};
// Checks torch_dtype or dtype, if present, against the types that are read here; every tensor states its own
// type.
void check_dtype(const JsonObject& json);
// Checks sliding_window and use_sliding_window even where no layer slides: refuses an impossible width, and
// use without a width. Architectures that slide then read the width.
void check_window(const JsonObject& json, bool default_window);

// Which layers layer_types gives a sliding window; empty where the field is absent.
std::vector<bool> read_layer_types(const JsonObject& json, std::uint32_t layers);

// Reads vocab, hidden, layers, max_positions, rms_eps, tied_head, bos and eos; sets `sparse` to all layers.
// Refuses what no architecture here supports: weights quantised in another way, an activation other than
// silu.
ModelConfig read_decoder(const JsonObject& json, const DecoderDefaults& defaults);

// Reads heads, kv_heads and head_dim (hidden / heads if absent), and RoPE over whole heads in the half-split
// form.
struct GqaDefaults {
  std::uint32_t kv_heads = 0;  // 0: as many as heads
  std::uint32_t head_dim = 0;  // where the field is absent; 0: hidden / heads
  double rope_theta = 10000.0;
};
AttentionConfig read_gqa(const JsonObject& json, const ModelConfig& config, const GqaDefaults& defaults);

// Reads both spellings: rope_theta + rope_scaling, and rope_parameters. The caller guarantees that `dims` is
// even.
RopeConfig read_rope(const JsonObject& json, std::uint32_t dims, double default_theta,
                     std::uint32_t max_positions);

// Reads the three numbers of routed experts; their keys differ between architectures. A fallback of 0: the
// field is required.
struct ExpertFields {
  std::string_view count_key;  // N
  std::uint32_t count = 0;
  std::string_view top_k_key;
  std::uint32_t top_k = 0;
  std::string_view width_key;
  std::uint32_t width = 0;
};
MoeConfig read_experts(const JsonObject& json, const ModelConfig& config, const ExpertFields& fields);
// Shared experts as one MLP: their number (null: zero; absent: `absent`) times `width`.
std::uint32_t read_shared_width(const JsonObject& json, std::string_view key, std::uint32_t width,
                                std::int64_t absent);

// Qwen's rule: a layer has experts iff it is not in mlp_only_layers and (layer + 1) mod decoder_sparse_step =
// 0.
std::vector<bool> read_sparse_step(const JsonObject& json, std::uint32_t layers);
// DeepSeek's rule: the first first_k_dense_replace layers have no experts; later layers have if layer mod
// moe_layer_freq = 0.
std::vector<bool> read_first_dense(const JsonObject& json, std::uint32_t layers);

}  // namespace sluice::model
