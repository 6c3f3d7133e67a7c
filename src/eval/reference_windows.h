// What an exact model says of the scored tokens of SteppedWindows, kept, so that several ways to compute a
// model can be compared with it, and it is computed once.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "engine/engine.h"
#include "eval/stepped_windows.h"
#include "eval/text_score.h"

namespace sluice::eval {

// Immutable once made. Keeps logits: scored tokens × vocabulary × 4 bytes, beside any engine's budget.
class ReferenceWindows {
 public:
  // Told the tokens done; false stops with Error(kInterrupted).
  using OnProgress = std::function<bool(std::size_t done)>;

  // Each window goes through `exact` as one prompt. `tokens` must outlive this. As score_windows.
  ReferenceWindows(engine::Engine& exact, std::span<const model::TokenId> tokens,
                   const SteppedWindows& windows, const OnProgress& on_progress);

  std::span<const WindowScore> scores() const { return scores_; }  // the exact model's own
  Bytes bytes() const;

  // As score_windows of the same tokens by a model of the same vocabulary, with its distance from the exact
  // one.
  std::vector<WindowScore> compare(engine::Engine& engine, bool steps, const OnProgress& on_progress) const;

 private:
  std::span<const model::TokenId> tokens_;
  SteppedWindows windows_;
  std::size_t vocab_;
  std::vector<WindowScore> scores_;
  std::vector<std::vector<float>> logits_;  // of each window: (scored, vocab)
};

// Share of the scored tokens where both find the same token likeliest. Of compared windows.
double top_agreement(std::span<const WindowScore> windows);
double mean_divergence(std::span<const WindowScore> windows);  // nats

}  // namespace sluice::eval
