// What a token of a model asks of a machine, apart from its choice of experts: the sizes of expert slices,
// and the part outside the routed experts. Everything follows from the model's config. SliceMoE; SPEC §4.1.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "codec/slices/slice_bits.h"
#include "experts/core/ids.h"
#include "lab/machine/machine.h"
#include "model/config.h"

namespace sluice::lab {

// Codes of `bits` for each weight, in groups of 32 with a binary16 scale and a zero point of one byte, which
// belong to the MSB. `weights` is the number of one expert's weights.
experts::ExpertBytes slice_bytes(double weights, codec::SliceBits bits);

// Bytes per weight outside the routed experts, and per element of the key/value cache.
struct RestWidths {
  double weight = 1 + 2 / 128.0, kv = 1;  // INT8 in groups of 128 with a binary16 scale; INT8
};

class SlicedModel {
 public:
  // Error(kUnsupported) for a model without experts, or with an encoder.
  explicit SlicedModel(std::string name, const model::ModelConfig& config);

  const std::string& name() const { return name_; }
  std::uint32_t layers() const { return layers_; }  // sparse layers
  std::uint32_t experts() const { return experts_; }
  std::uint32_t top_k() const { return top_k_; }
  double expert_weights() const { return expert_weights_; }  // P
  double expert_ops(double tokens) const { return 2 * expert_weights_ * tokens; }
  double rest_weights() const;  // weights outside the routed experts, the head included

  struct Work {
    Traffic traffic;
    double seconds = 0;
  };
  // The work outside the routed experts when each of these sequences takes `tokens` more behind `context`
  // positions: dense layers, attention, shared experts, routers and, for one token per sequence, the head.
  struct Stretch {
    double tokens = 0, context = 0;
  };
  Work rest(const Machine& machine, std::span<const Stretch> sequences, const RestWidths& widths = {}) const;

 private:
  struct Layer {
    double weights = 0;  // weights outside the routed experts
    double window = 0;   // positions that the layer's attention sees; 0: all
  };
  std::string name_;
  std::uint32_t layers_, experts_, top_k_;
  double expert_weights_ = 0;
  std::vector<Layer> model_layers_;  // dense layers included
  double head_ = 0;                  // weights
  double kv_numbers_ = 0;            // elements that a layer keeps per position
  double attention_macs_ = 0;        // per token and visible position, in one layer
};

// Published shapes, by name: deepseek-v2-lite, qwen1.5-moe-a2.7b.
std::span<const SlicedModel> published_models();
const SlicedModel& find_published_model(std::string_view name);  // Error(kUsage)

}  // namespace sluice::lab
