// Keeps the exact model's logits for the scored tokens of SteppedWindows, so that several ways to compute a
// model can be compared with it while it runs only once.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "eval/stepped_windows.h"
#include "eval/text_score.h"

namespace sluice::engine {
class Engine;
}

namespace sluice::eval {

// Immutable once made. Keeps logits: scored tokens × vocabulary × 4 bytes, outside any engine's budget.
class ReferenceWindows {
 public:
  // Called with the tokens done; false stops with Error(kInterrupted).
  using OnProgress = std::function<bool(std::size_t done)>;

  // Each window goes through `exact` as one prompt. `tokens` must outlive this. Errors as score_windows.
  ReferenceWindows(engine::Engine& exact, std::span<const tokenizer::TokenId> tokens,
                   const SteppedWindows& windows, const OnProgress& on_progress);

  std::span<const WindowScore> scores() const { return scores_; }  // the exact model's
  Bytes bytes() const;

  // As score_windows for the same tokens by a model with the same vocabulary, with its distance from the
  // exact model.
  std::vector<WindowScore> compare(engine::Engine& engine, bool steps, const OnProgress& on_progress) const;

 private:
  std::span<const tokenizer::TokenId> tokens_;
  SteppedWindows windows_;
  std::size_t vocab_;
  std::vector<WindowScore> scores_;
  std::vector<std::vector<float>> logits_;  // per window: (scored, vocab)
};

// Share of the scored tokens for which both models find the same token likeliest. REQUIRES: compared windows.
double top_agreement(std::span<const WindowScore> windows);
double mean_divergence(std::span<const WindowScore> windows);  // nats

}  // namespace sluice::eval
