// From logits to the next token, with the defaults of Hugging Face generation.
#pragma once

#include <cstdint>
#include <span>

#include "base/splitmix64.h"
#include "engine/session/candidate.h"
#include "model/config.h"
#include "tokenizer/text/token_id.h"

namespace sluice::engine {

struct SamplerConfig {
  double temperature = 0.0;         // 0: greedy, without penalties
  std::int64_t top_k = 0;           // 0: off
  double top_p = 1.0;               // 1: off
  double min_p = 0.0;               // 0: off
  double repetition_penalty = 1.0;  // 1: off
  std::uint64_t seed = 0;

  void validate() const;  // Error(kUsage) naming the flag
  // The likeliest token is taken as it is: no candidates are needed.
  bool takes_likeliest() const { return temperature == 0 && repetition_penalty == 1.0; }
};

// The settings that generation_config.json asks for; without do_sample greedy (keeping its repetition
// penalty, like Hugging Face).
SamplerConfig sampler_defaults(const model::GenerationConfig& generation);

// Deterministic in seed and inputs. Processes logits in Hugging Face's order: repetition penalty,
// temperature, top-k, top-p, min-p. Ties take the lowest id. Thread-compatible.
class Sampler {
 public:
  explicit Sampler(const SamplerConfig& config);
  // `context`: prompt and generated ids so far (for the repetition penalty). `scratch`: room for one
  // candidate a logit, unless the config takes the likeliest; nothing in it is kept between calls, so all
  // samplers may share one. Allocates nothing. Error(kInvalid) if a logit is NaN.
  tokenizer::TokenId next(std::span<const float> logits, std::span<const tokenizer::TokenId> context,
                          std::span<Candidate> scratch);

 private:
  double uniform();  // [0, 1), splitmix64

  SamplerConfig config_;
  SplitMix64 random_;
};

}  // namespace sluice::engine
