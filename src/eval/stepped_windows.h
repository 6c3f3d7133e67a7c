// The likelihood of a text whose tokens are decoded one by one behind a prompt, as a generation is, so that
// what is decided in decode steps alone shows in it.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string_view>
#include <vector>

#include "engine/engine.h"
#include "eval/text_score.h"

namespace sluice::eval {

// A text is cut into consecutive windows, each begun anew: `prompt` tokens as a prompt, then one a step. What
// is scored are the tokens that a step predicts: those from index prompt + 1 on.
struct SteppedWindows {
  std::size_t window = 256, prompt = 64;
  // Of the text: windows too short for one scored token are left out.
  std::size_t count(std::size_t tokens) const;
  std::size_t scored(std::size_t tokens) const;  // tokens
};

// Error(kInvalid), naming the flag -f, for a text of fewer than two windows: the error of a loss comes from
// them. `fix`: what the user can do.
void check_windows(const SteppedWindows& windows, std::size_t tokens, std::string_view fix);

// One a window. With `steps` false each window is one prompt, and the same tokens are scored: the same
// numbers where steps compute as prompts do, and sooner. on_progress gets the tokens done; returning false
// stops early with Error(kInterrupted). The engine has room for sequences of `window` tokens.
std::vector<WindowScore> score_windows(engine::Engine& engine, std::span<const model::TokenId> tokens,
                                       const SteppedWindows& windows, bool steps,
                                       const std::function<bool(std::size_t done)>& on_progress);

// ln of the ratio of two perplexities of the same tokens, and its standard error: of the mean of the windows'
// differences, as if they were drawn independently; infinite for fewer than two windows.
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
