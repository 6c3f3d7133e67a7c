// The forward pass of every architecture: a short file each, and a line each here and in models/models.cc.
// The tensors and the config of an architecture are in src/model/arch_<name>.cc.
#pragma once

#include <string_view>

#include "engine/forward/layer_run.h"

namespace sluice::engine::models {

using model::Role;

// One layer on the residual stream, in two halves: the attention of a layer can be run by itself, to see what
// the experts behind it will be asked.
struct LayerForward {
  void (*attention)(LayerRun& run) = nullptr;     // norms, projections, attention; hidden +=
  void (*feed_forward)(LayerRun& run) = nullptr;  // norm, experts or a dense MLP; hidden +=
};

void deepseek_attention(LayerRun& run);
void deepseek_v2_attention(LayerRun& run);
void gpt_oss_attention(LayerRun& run);
void mixtral_attention(LayerRun& run);
void olmoe_attention(LayerRun& run);
void qwen2_moe_attention(LayerRun& run);
void qwen3_moe_attention(LayerRun& run);
void switch_transformers_attention(LayerRun& run);  // the decoder's
void switch_transformers_keys(LayerRun& run);       // the encoder's …
void switch_transformers_encoder_attention(LayerRun& run);
void xverse_attention(LayerRun& run);

// The second half of every architecture so far: the norm, then the experts, or the dense MLP of a layer that
// has none.
void feed_forward(LayerRun& run);

// Error(kUnsupported) for a model_type without a forward pass.
LayerForward find_forward(std::string_view model_type);

// An encoder layer, in two passes over the chunks of its input: `keys` stores the keys and values of all
// tokens, `layer` does the rest.
struct EncoderForward {
  void (*keys)(LayerRun& run) = nullptr;
  LayerForward layer;
};
// All are null for a model_type without an encoder.
EncoderForward find_encoder(std::string_view model_type);

}  // namespace sluice::engine::models
