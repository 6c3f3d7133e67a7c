#include "eval/reference_windows.h"

#include <algorithm>
#include <memory>

#include "base/error.h"
#include "base/stop_request.h"
#include "engine/engine.h"
#include "engine/session/sequence.h"
#include "eval/feed.h"
#include "eval/logits.h"
#include "model/architecture.h"

namespace sluice::eval {
namespace {

// Calls take(index of the scored token in its window, logits, the actual token) for every scored token of
// window `w`.
template <class Take>
void for_each_scored(engine::Engine& engine, engine::Sequence& sequence,
                     std::span<const tokenizer::TokenId> tokens, const SteppedWindows& windows, std::size_t w,
                     bool steps, const ReferenceWindows::OnProgress& on_progress, const Take& take) {
  const std::size_t begin = w * windows.window;
  const std::span<const tokenizer::TokenId> window =
      tokens.subspan(begin, std::min(windows.window, tokens.size() - begin));
  sequence.clear();
  // The logits of a token predict the token behind it.
  feed(engine, sequence, window, steps ? windows.prompt : kAllOfIt,
       {[&](std::size_t t) { return t >= windows.prompt && t + 1 < window.size(); },
        [&](std::size_t t, std::span<const float> logits) {
          if (!on_progress(begin + t)) throw interrupted_error();
          take(t - windows.prompt, logits, window[t + 1]);
        }});
}

}  // namespace

ReferenceWindows::ReferenceWindows(engine::Engine& exact, std::span<const tokenizer::TokenId> tokens,
                                   const SteppedWindows& windows, const OnProgress& on_progress)
    : tokens_(tokens), windows_(windows), vocab_(exact.model().config.vocab) {
  SLUICE_CHECK(windows.prompt > 0 && windows.window >= windows.prompt + 2);
  const std::unique_ptr<engine::Sequence> sequence = exact.new_sequence();
  for (std::size_t w = 0; w < windows.count(tokens.size()); ++w) {
    WindowScore& score = scores_.emplace_back();
    std::vector<float>& kept = logits_.emplace_back();
    for_each_scored(exact, *sequence, tokens, windows, w, false, on_progress,
                    [&](std::size_t, std::span<const float> logits, tokenizer::TokenId next) {
                      score.nll += Distribution(logits).negative_log_likelihood(next);
                      score.predicted += 1;
                      kept.insert(kept.end(), logits.begin(), logits.end());
                    });
  }
}

Bytes ReferenceWindows::bytes() const {
  Bytes bytes = 0;
  for (const std::vector<float>& one : logits_) bytes += one.size() * sizeof(float);
  return bytes;
}

std::vector<WindowScore> ReferenceWindows::compare(engine::Engine& engine, bool steps,
                                                   const OnProgress& on_progress) const {
  SLUICE_CHECK(engine.model().config.vocab == vocab_);
  const std::unique_ptr<engine::Sequence> sequence = engine.new_sequence();
  std::vector<WindowScore> scores;
  for (std::size_t w = 0; w < logits_.size(); ++w) {
    WindowScore& score = scores.emplace_back();
    for_each_scored(engine, *sequence, tokens_, windows_, w, steps, on_progress,
                    [&](std::size_t i, std::span<const float> logits, tokenizer::TokenId next) {
                      const std::span<const float> kept = logits_[w];
                      const Distribution model(logits);
                      const Distribution reference(kept.subspan(i * vocab_, vocab_));
                      score.predicted += 1;
                      score.nll += model.negative_log_likelihood(next);
                      score.reference_nll += reference.negative_log_likelihood(next);
                      score.same_top += reference.top() == model.top();
                      score.divergence.push_back(divergence(reference, model));
                    });
  }
  return scores;
}

double top_agreement(std::span<const WindowScore> windows) {
  double same = 0, tokens = 0;
  for (const WindowScore& window : windows) {
    same += static_cast<double>(window.same_top);
    tokens += static_cast<double>(window.predicted);
  }
  return same / tokens;
}

double mean_divergence(std::span<const WindowScore> windows) {
  double sum = 0, tokens = 0;
  for (const WindowScore& window : windows) {
    for (const double one : window.divergence) sum += one;
    tokens += static_cast<double>(window.divergence.size());
  }
  return sum / tokens;
}

}  // namespace sluice::eval
