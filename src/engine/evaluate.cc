#include "engine/evaluate.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "base/error.h"

namespace sluice::engine {

double Evaluation::perplexity() const { return std::exp(nll / static_cast<double>(predicted)); }

double Evaluation::bits_per_byte(Bytes text_bytes) const {
  return nll / std::numbers::ln2 / static_cast<double>(text_bytes);
}

double negative_log_likelihood(std::span<const float> logits, model::TokenId target) {
  const double most = *std::max_element(logits.begin(), logits.end());
  double sum = 0;
  for (float logit : logits) sum += std::exp(logit - most);
  return most + std::log(sum) - logits[static_cast<std::size_t>(target)];
}

Evaluation evaluate(Engine& engine, std::span<const model::TokenId> tokens, std::size_t window,
                    const std::function<bool(std::size_t)>& on_progress) {
  Evaluation result;
  result.tokens = tokens.size();
  const std::unique_ptr<Sequence> sequence = engine.new_sequence();
  for (std::size_t begin = 0; begin + 1 < tokens.size(); begin += window) {
    if (!on_progress(begin)) throw Error(ErrorKind::kInterrupted, "stopped before the end of the text");
    const std::span<const model::TokenId> part =
        tokens.subspan(begin, std::min(window, tokens.size() - begin));
    sequence->clear();
    engine.prefill(*sequence, part,
                   {[&](std::size_t t) { return t + 1 < part.size(); },
                    [&](std::size_t t, std::span<const float> logits) {
                      result.nll += negative_log_likelihood(logits, part[t + 1]);
                      result.predicted += 1;
                    }});
  }
  on_progress(tokens.size());
  return result;
}

}  // namespace sluice::engine
