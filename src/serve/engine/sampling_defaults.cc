#include "serve/engine/sampling_defaults.h"

namespace sluice::serve {

engine::SamplerConfig sampling_defaults(const model::GenerationConfig& generation) {
  engine::SamplerConfig config;
  if (generation.says_do_sample && !generation.do_sample) return config;
  config.temperature = generation.temperature;
  config.top_p = generation.top_p;
  config.min_p = generation.min_p;
  config.repetition_penalty = generation.repetition_penalty;
  if (generation.says_top_k) config.top_k = generation.top_k;
  return config;
}

}  // namespace sluice::serve
