// Perplexity of a text, in consecutive windows.
#pragma once

#include <cstdint>
#include <functional>
#include <span>

#include "engine/engine.h"

namespace sluice::engine {

struct Evaluation {
  std::uint64_t tokens = 0;     // of the text
  std::uint64_t predicted = 0;  // tokens scored
  double nll = 0;               // sum, in nats
  double perplexity() const;    // exp(nll / predicted)
  double bits_per_byte(Bytes text_bytes) const;
};

// Windows of `window` tokens, each scored from its second token; the last counts if it has at least two.
// on_progress gets the tokens done; returning false stops early with Error(kInterrupted).
Evaluation evaluate(Engine& engine, std::span<const model::TokenId> tokens, std::size_t window,
                    const std::function<bool(std::size_t done)>& on_progress);

// −ln softmax(logits)[target], summed in double.
double negative_log_likelihood(std::span<const float> logits, model::TokenId target);

}  // namespace sluice::engine
