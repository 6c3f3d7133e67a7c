// From logits to the next token, with the defaults of Hugging Face generation.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/splitmix64.h"
#include "engine/session/candidate.h"
#include "model/config.h"
#include "tokenizer/text/token_id.h"

namespace sluice::engine {

// Added to the logit of one token; −100 forbids the token.
struct LogitBias {
  static constexpr float kForbids = -100;
  tokenizer::TokenId id = 0;
  float bias = 0;  // −100 … 100
};

struct SamplerConfig {
  double temperature = 0.0;         // 0: greedy, without penalties
  std::int64_t top_k = 0;           // 0: off
  double top_p = 1.0;               // 1: off
  double min_p = 0.0;               // 0: off
  double repetition_penalty = 1.0;  // 1: off
  // Subtracted from the logit of every token of the answer so far; and once for each time that it is
  // there.
  double presence_penalty = 0.0;   // 0: off
  double frequency_penalty = 0.0;  // 0: off
  std::vector<LogitBias> bias = {};
  std::uint64_t seed = 0;

  void validate() const;       // Error(kUsage) naming the flag
  bool keeps_logits() const {  // neither penalties nor biases
    return repetition_penalty == 1.0 && presence_penalty == 0 && frequency_penalty == 0 && bias.empty();
  }
  // The likeliest token is taken as it is: no candidates are needed.
  bool takes_likeliest() const { return temperature == 0 && keeps_logits(); }
};

// The settings that generation_config.json asks for; without do_sample greedy (keeping its repetition
// penalty, like Hugging Face).
SamplerConfig sampler_defaults(const model::GenerationConfig& generation);

// Deterministic in seed and inputs. What acts on logits, in this order, which is Hugging Face's for those
// that it has: bias, the tokens that are allowed, repetition penalty (of all that came before), presence
// and frequency penalties (of the answer), temperature, top-k, top-p, min-p. Ties take the lowest id.
// Thread-compatible.
class Sampler {
 public:
  explicit Sampler(const SamplerConfig& config);
  // `context`: prompt and generated ids so far; `prompt`: how many of these are the prompt. `scratch`:
  // room for one candidate a logit, unless the config takes the likeliest; nothing in it is kept between
  // calls, so all samplers may share one. `allowed`: a bit for each id, 64 in a word; none: all are. An
  // only one is taken as it is, and nothing is drawn. Allocates nothing. Error(kInvalid) if a logit is
  // NaN, and if no token is left that biases and `allowed` do not forbid.
  tokenizer::TokenId next(std::span<const float> logits, std::span<const tokenizer::TokenId> context,
                          std::size_t prompt, std::span<Candidate> scratch,
                          std::span<const std::uint64_t> allowed = {});

 private:
  double uniform();  // [0, 1), splitmix64
  // What may be drawn, in ascending id, with logits as biases and penalties leave them.
  std::span<Candidate> adjusted(std::span<const float> logits, std::span<const tokenizer::TokenId> context,
                                std::size_t prompt, std::span<Candidate> scratch,
                                std::span<const std::uint64_t> allowed) const;

  SamplerConfig config_;
  SplitMix64 random_;
};

}  // namespace sluice::engine
