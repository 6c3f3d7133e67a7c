// The likelihood of a text whose tokens are decoded one by one behind a prompt, like in a generation, so that
// decisions that occur only in decode steps affect it.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string_view>
#include <vector>

#include "eval/text_score.h"

namespace sluice::engine {
class Engine;
}

namespace sluice::eval {

// Cuts a text into consecutive windows, each starting anew: `prompt` tokens as a prompt, then one token a
// step. The tokens that a step predicts are scored: those from index prompt + 1 on.
struct SteppedWindows {
  std::size_t window = 256, prompt = 64;
  // How many windows a text of `tokens` has; leaves out windows too short for one scored token.
  std::size_t count(std::size_t tokens) const;
  std::size_t scored(std::size_t tokens) const;  // how many of the text's tokens are scored
};

// Error(kInvalid) naming the setting kFile for a text of fewer than two windows, from which the error of a
// loss is computed. `fix`: the remedy for the user.
void check_windows(const SteppedWindows& windows, std::size_t tokens, std::string_view fix);

// One score per window. With `steps` false each window is one prompt, and the same tokens are scored: faster,
// and the same numbers wherever steps compute like prompts. on_progress gets the tokens done; returning false
// stops with Error(kInterrupted). The engine must have room for sequences of `window` tokens.
std::vector<WindowScore> score_windows(engine::Engine& engine, std::span<const tokenizer::TokenId> tokens,
                                       const SteppedWindows& windows, bool steps,
                                       const std::function<bool(std::size_t done)>& on_progress);

// ln of the ratio of two perplexities of the same tokens, and its standard error: that of the mean of the
// windows' differences, as if windows were drawn independently; infinite for fewer than two windows.
struct LossDifference {
  double loss = 0, error = 0;  // nats a token
};
LossDifference difference(std::span<const WindowScore> changed, std::span<const WindowScore> reference);

// The same as shares of the reference's perplexity; the error by d(eˣ) = eˣ dx.
struct PerplexityLoss {
  double share = 0, error = 0;
};
PerplexityLoss of_perplexity(const LossDifference& difference);

double perplexity(std::span<const WindowScore> windows);

}  // namespace sluice::eval
