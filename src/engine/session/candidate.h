// One token that may be drawn, while it is decided which.
#pragma once

#include "tokenizer/text/token_id.h"

namespace sluice::engine {

// A Sampler works on these. The engine plans and holds room for one of them a token of the vocabulary.
struct Candidate {
  float logit;
  tokenizer::TokenId id;
  // Relative to the likeliest. Before weights are made: whether, or how often, the context has the token.
  double weight;
};

}  // namespace sluice::engine
