#include "eval/stepped_windows.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/error.h"
#include "base/setting.h"
#include "base/stop_request.h"

namespace sluice::eval {

std::size_t SteppedWindows::count(std::size_t tokens) const {
  return tokens / window + (tokens % window >= prompt + 2 ? 1 : 0);
}

std::size_t SteppedWindows::scored(std::size_t tokens) const {
  const std::size_t last = tokens % window;
  return tokens / window * (window - prompt - 1) + (last >= prompt + 2 ? last - prompt - 1 : 0);
}

void check_windows(const SteppedWindows& windows, std::size_t tokens, std::string_view fix) {
  if (windows.count(tokens) >= 2) return;
  throw Error(ErrorKind::kInvalid, "the text is too short: the error of a loss comes from its windows")
      .in(Setting::kFile)
      .expected(fmt::format("at least 2 windows of {} tokens", windows.window))
      .found(fmt::format("{} tokens", tokens))
      .fix(fix);
}

std::vector<WindowScore> score_windows(engine::Engine& engine, std::span<const tokenizer::TokenId> tokens,
                                       const SteppedWindows& windows, bool steps,
                                       const std::function<bool(std::size_t)>& on_progress) {
  SLUICE_CHECK(windows.prompt > 0 && windows.window >= windows.prompt + 2);
  std::vector<WindowScore> scores;
  TextScorer scorer(engine, steps ? windows.prompt : kAllOfIt);
  for (std::size_t w = 0; w < windows.count(tokens.size()); ++w) {
    const std::size_t begin = w * windows.window;
    std::size_t done = begin;
    scores.push_back(scorer.score(tokens,
                                  {.begin = begin,
                                   .end = std::min(begin + windows.window, tokens.size()),
                                   .scored = begin + windows.prompt + 1},
                                  [&] { return on_progress(done++); }));
  }
  if (!on_progress(tokens.size())) throw interrupted_error();
  return scores;
}

LossDifference difference(std::span<const WindowScore> changed, std::span<const WindowScore> reference) {
  SLUICE_CHECK(changed.size() == reference.size() && !changed.empty());
  double sum = 0, tokens = 0;
  for (std::size_t w = 0; w < changed.size(); ++w) {
    SLUICE_CHECK(changed[w].predicted == reference[w].predicted);
    sum += changed[w].nll - reference[w].nll;
    tokens += static_cast<double>(changed[w].predicted);
  }
  const double mean = sum / tokens;
  if (changed.size() < 2) return {mean, std::numeric_limits<double>::infinity()};
  double squares = 0;
  for (std::size_t w = 0; w < changed.size(); ++w) {
    const double rest = changed[w].nll - reference[w].nll - mean * static_cast<double>(changed[w].predicted);
    squares += rest * rest;
  }
  const double n = static_cast<double>(changed.size());
  return {mean, std::sqrt(squares * n / (n - 1)) / tokens};
}

PerplexityLoss of_perplexity(const LossDifference& difference) {
  return {std::expm1(difference.loss), std::exp(difference.loss) * difference.error};
}

double perplexity(std::span<const WindowScore> windows) {
  double nll = 0, tokens = 0;
  for (const WindowScore& window : windows) {
    nll += window.nll;
    tokens += static_cast<double>(window.predicted);
  }
  return std::exp(nll / tokens);
}

}  // namespace sluice::eval
