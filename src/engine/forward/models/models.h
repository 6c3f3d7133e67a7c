// The forward pass of every architecture: one short file each, and one line each here and in models.cc. The
// tensors and the config of an architecture are in src/model/arch_<name>.cc.
#pragma once

#include <string_view>

#include "engine/forward/layer_run.h"

namespace sluice::engine::models {

using model::Role;

// The operations of one layer on the residual stream.
using LayerForward = void (*)(LayerRun& run);

void deepseek(LayerRun& run);
void deepseek_v2(LayerRun& run);
void mixtral(LayerRun& run);
void olmoe(LayerRun& run);
void qwen2_moe(LayerRun& run);
void qwen3_moe(LayerRun& run);
void switch_transformers(LayerRun& run);       // a layer of the decoder
void switch_transformers_keys(LayerRun& run);  // a layer of the encoder …
void switch_transformers_encoder(LayerRun& run);
void xverse(LayerRun& run);

// Error(kUnsupported) for a model_type without a forward pass.
LayerForward find_forward(std::string_view model_type);

// An encoder layer, in two passes over the chunks of its input: `keys` stores the keys and values of all
// tokens, `layer` does the rest.
struct EncoderForward {
  LayerForward keys = nullptr, layer = nullptr;
};
// Both are null for a model_type without an encoder.
EncoderForward find_encoder(std::string_view model_type);

}  // namespace sluice::engine::models
