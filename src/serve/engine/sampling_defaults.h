// How a server draws tokens where a request does not say.
#pragma once

#include "engine/session/sampler.h"
#include "model/config.h"

namespace sluice::serve {

// What generation_config.json itself writes down; else temperature 1 and no limits. Where the file says
// do_sample: false, temperature 0. Its repetition penalty counts only where tokens are drawn.
engine::SamplerConfig sampling_defaults(const model::GenerationConfig& generation);

}  // namespace sluice::serve
