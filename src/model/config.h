// The content of a checkpoint's config.json in one spelling. SPEC §9.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/dtype.h"
#include "base/json/json.h"
#include "tokenizer/text/token_id.h"

namespace sluice::model {

enum class AttentionKind { kGqa, kMla };
// kPerHead: qwen3. kWhole: the whole projection before it is split into heads (olmoe).
enum class QkNorm { kNone, kPerHead, kWhole };
enum class RopeScaling { kNone, kLinear, kYarn };

struct RopeConfig {
  double theta = 10000.0;
  RopeScaling scaling = RopeScaling::kNone;
  bool interleaved = false;  // pairs (2i, 2i+1) instead of (i, i + half)
  std::uint32_t dims = 0;    // rotated elements per head (even)
  double factor = 1.0;
  double beta_fast = 32.0, beta_slow = 1.0;   // YaRN
  double mscale = 0.0, mscale_all_dim = 0.0;  // YaRN as DeepSeek spells it (0: absent)
  std::optional<double> attention_factor;     // YaRN as Hugging Face spells it
  bool truncate = true;                       // YaRN: the ends of its range are whole dimensions
  std::uint32_t original_max_positions = 0;
};

// T5's relative position bias: added to the scores of every self-attention, by head and by bucket of the
// distance. The first layer of a stack holds the table for all its layers.
struct RelativeBiasConfig {
  std::uint32_t buckets = 0;       // 0: none
  std::uint32_t max_distance = 0;  // from this distance on all distances share a bucket
};

struct AttentionConfig {
  AttentionKind kind = AttentionKind::kGqa;
  std::uint32_t heads = 0, kv_heads = 0;
  std::uint32_t head_dim = 0;                                                 // kGqa
  std::uint32_t q_lora_rank = 0;                                              // kMla; 0: q_proj
  std::uint32_t kv_lora_rank = 0, nope_dim = 0, rope_dim = 0, value_dim = 0;  // kMla
  bool qkv_bias = false, o_bias = false;
  bool sinks =
      false;  // each head has one more score, learned, that takes part in the softmax and has no value
  QkNorm qk_norm = QkNorm::kNone;
  std::optional<float> clip_qkv;
  std::uint32_t sliding_window = 0;          // 0: none; read it through ModelConfig::window
  std::vector<std::uint32_t> layer_windows;  // one per layer if they differ, else empty
  RopeConfig rope;                           // dims 0: no RoPE
  bool scaled = true;                        // scores times head_dim^-1/2
  RelativeBiasConfig relative;
};

struct MoeConfig {
  std::uint32_t experts = 0;  // N
  std::uint32_t top_k = 0;
  std::uint32_t width = 0;         // one routed expert's
  std::uint32_t shared_width = 0;  // all shared experts together; 0: none
  bool shared_gate = false;        // the output is multiplied by sigmoid(shared_expert_gate · x)
  bool router_bias = false;        // added to the router's logits
  bool renormalise = false;
  float renormalise_epsilon = 0.0f;
  float routed_scale = 1.0f;  // applied if weights are not renormalised
  std::uint32_t groups = 1, top_groups = 1;
  std::uint32_t capacity = 0;  // tokens per expert and sequence in one forward; 0: no limit
  bool mxfp4 = false;          // published experts are stored in MXFP4, stacked
};

// What an MLP does between its projections, in dense layers and experts alike.
enum class Activation {
  kSwiGlu,         // down(silu(gate(x)) * up(x))
  kRelu,           // down(max(up(x), 0)): no gate
  kClampedSwiGlu,  // down((u + 1) * g * sigmoid(alpha * g)), g = gate(x) at most limit, u = up(x) within it
  kClampedSwiGluPairs  // the same, where the rows of `up` are those of gate and up by turns: no gate
};
struct ActivationConfig {
  Activation kind = Activation::kSwiGlu;
  float limit = 0.0f, alpha = 0.0f;  // for the clamped ones
  bool gate() const { return kind == Activation::kSwiGlu || kind == Activation::kClampedSwiGlu; }
  // Rows of `up` for each of the MLP's width.
  std::uint32_t up_rows() const { return kind == Activation::kClampedSwiGluPairs ? 2 : 1; }
};

struct ModelConfig {
  std::string model_type;                           // a name of the architecture table
  std::uint32_t vocab = 0, hidden = 0, layers = 0;  // layers: of encoder and decoder together
  std::uint32_t encoder_layers = 0;                 // the first of `layers`; 0: no encoder
  std::uint32_t dense_width = 0;                    // MLP width of layers without experts
  std::uint32_t max_positions = 0;
  float rms_eps = 1e-6f;
  bool tied_head = false;
  float head_scale = 1.0f;  // multiplies the last hidden state before the head
  ActivationConfig activation;
  std::vector<bool> sparse;      // per layer: whether it has routed experts
  std::uint32_t mtp_layers = 0;  // stored after the last layer for multi-token prediction; not run
  AttentionConfig attention;
  MoeConfig moe;
  std::vector<tokenizer::TokenId> bos, eos;  // from config.json, overridden by generation_config.json
  tokenizer::TokenId decoder_start = 0;  // first token of a decoder behind an encoder; overridden likewise
  std::uint32_t decoder_layers() const { return layers - encoder_layers; }
  bool has_encoder() const { return encoder_layers != 0; }
  std::uint32_t expert_matrices() const { return activation.gate() ? 3 : 2; }  // n, SPEC §0
  // Numbers of one expert, without its biases.
  std::uint64_t expert_elements() const;
  std::uint32_t sparse_layers() const;                    // Lm
  std::uint32_t sparse_index(std::uint32_t layer) const;  // among sparse layers; dense layers are not counted
  // Positions that a token of this layer sees, itself included; 0: all.
  std::uint32_t window(std::uint32_t layer) const;
};

// generation_config.json, as Hugging Face reads it; without the file every field has its default (greedy).
struct GenerationConfig {
  bool do_sample = false;
  double temperature = 1.0, top_p = 1.0, min_p = 0.0, repetition_penalty = 1.0;
  std::int64_t top_k = 50;                          // Hugging Face's default for sampling; 0: off
  bool says_do_sample = false, says_top_k = false;  // the file itself, and not a default
  // Fields whose values change Hugging Face's text and have no effect here: always, and only in sampled text.
  std::vector<std::string> ignored, ignored_in_sampling;
};

// Reads both published spellings. Checks every field for presence, type, range and consistency; the error
// names file, field, expected and found. `name` is the file's path for errors.
ModelConfig parse_config(const Json& json, const std::string& name);
GenerationConfig parse_generation_config(const Json& json, const std::string& name, ModelConfig& config);

}  // namespace sluice::model
