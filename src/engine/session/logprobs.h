// What the model itself says of tokens: log-probabilities, before anything acts on its logits.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "tokenizer/text/token_id.h"

namespace sluice::engine {

// Natural logarithm of the softmax over the model's own logits; in double, summed in ascending id.
struct TokenLogprob {
  tokenizer::TokenId id = 0;
  double logprob = 0;
  bool operator==(const TokenLogprob&) const = default;
};

// Returns that of `token`. `best` gets the `count` likeliest tokens, descending, ties by id: where `token` is
// among them, with the very same number. Allocates no more than `best` needs. REQUIRES: a token of the
// vocabulary, and no NaN.
double token_logprob(std::span<const float> logits, tokenizer::TokenId token, std::size_t count,
                     std::vector<TokenLogprob>& best);

}  // namespace sluice::engine
