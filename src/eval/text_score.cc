#include "eval/text_score.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "base/error.h"
#include "base/stop_request.h"
#include "engine/engine.h"
#include "engine/session/sequence.h"
#include "eval/logits.h"
#include "model/architecture.h"

namespace sluice::eval {

Json to_json(const WindowScore& score) {
  Json json = {{"predicted", score.predicted}, {"nll", score.nll}};
  if (!score.divergence.empty()) {
    json["reference_nll"] = score.reference_nll;
    json["same_top"] = score.same_top;
    json["divergence"] = score.divergence;
  }
  return json;
}

WindowScore window_score_from_json(const Json& json, Compared compared, const std::string& name) {
  constexpr double kMost = 1e300;
  const JsonObject object(json, name);
  WindowScore score;
  score.predicted = static_cast<std::uint64_t>(object.integer("predicted", 1, std::int64_t{1} << 40));
  score.nll = object.real("nll", -kMost, kMost);
  if (compared == Compared::kNo) return score;
  score.reference_nll = object.real("reference_nll", -kMost, kMost);
  score.same_top =
      static_cast<std::uint64_t>(object.integer("same_top", 0, static_cast<std::int64_t>(score.predicted)));
  const Json* const values = object.find("divergence");
  if (values == nullptr || !values->is_array() || values->size() != score.predicted)
    object.fail("divergence", "a number for each predicted token");
  for (const Json& value : *values) {
    if (!value.is_number()) object.fail("divergence", "a number for each predicted token");
    score.divergence.push_back(value.get<double>());
  }
  return score;
}

TextScorer::TextScorer(engine::Engine& model, std::size_t prompt)
    : model_(model), prompt_(prompt), sequence_(model.new_sequence()) {}

TextScorer::~TextScorer() = default;

void TextScorer::compare_with(engine::Engine& reference, std::size_t rows) {
  SLUICE_CHECK(rows > 0 && reference.model().config.vocab == model_.model().config.vocab);
  reference_ = &reference;
  reference_sequence_ = reference.new_sequence();
  block_ = rows;
  reference_logits_.resize(rows * model_.model().config.vocab);
}

WindowScore TextScorer::score(std::span<const tokenizer::TokenId> text, const Window& window,
                              const std::function<bool()>& go_on) {
  WindowScore score;
  sequence_->clear();
  if (reference_ != nullptr) reference_sequence_->clear();
  for (std::size_t begin = window.begin; begin < window.end;) {
    const std::size_t end = block_ < window.end - begin ? begin + block_ : window.end;
    const std::span<const tokenizer::TokenId> block = text.subspan(begin, end - begin);
    // The logits of a token predict the token behind it.
    const auto wants = [&](std::size_t t) {
      return begin + t + 1 >= window.scored && begin + t + 1 < window.end;
    };
    const auto check = [&] {
      if (go_on && !go_on()) throw interrupted_error();
    };
    const auto row = [&](std::size_t t) {
      const std::size_t vocab = model_.model().config.vocab;
      return std::span(reference_logits_).subspan(t * vocab, vocab);
    };
    const auto keep = [&](std::size_t t, std::span<const float> logits) {
      check();
      std::copy(logits.begin(), logits.end(), row(t).begin());
    };
    const auto take = [&](std::size_t t, std::span<const float> logits) {
      check();
      const Distribution model(logits);
      const tokenizer::TokenId target = text[begin + t + 1];
      score.nll += model.negative_log_likelihood(target);
      score.predicted += 1;
      if (reference_ == nullptr) return;
      const Distribution reference(row(t));
      score.reference_nll += reference.negative_log_likelihood(target);
      score.same_top += reference.top() == model.top();
      score.divergence.push_back(divergence(reference, model));
    };
    if (reference_ != nullptr) reference_->prefill(*reference_sequence_, block, {wants, keep});
    feed(model_, *sequence_, block, prompt_, {wants, take});
    begin = end;
  }
  return score;
}

Quantiles quantiles(std::vector<double> values) {
  Quantiles result;
  for (const double value : values) result.mean += value;
  result.mean /= static_cast<double>(values.size());
  std::sort(values.begin(), values.end());
  result.median = quantile(values, 0.5);
  result.p90 = quantile(values, 0.9);
  result.p95 = quantile(values, 0.95);
  result.p99 = quantile(values, 0.99);
  result.p999 = quantile(values, 0.999);
  result.most = values.back();
  result.least = values.front();
  return result;
}

double TextScore::perplexity() const { return std::exp(nll / static_cast<double>(predicted)); }

double TextScore::reference_perplexity() const {
  return std::exp(reference_nll / static_cast<double>(predicted));
}

double TextScore::bits_per_byte(Bytes text_bytes) const {
  return nll / std::numbers::ln2 / static_cast<double>(text_bytes);
}

TextScore sum(std::span<const WindowScore> windows) {
  TextScore total;
  std::uint64_t same = 0;
  std::vector<double> divergences;
  for (const WindowScore& window : windows) {
    total.predicted += window.predicted;
    total.nll += window.nll;
    total.reference_nll += window.reference_nll;
    same += window.same_top;
    divergences.insert(divergences.end(), window.divergence.begin(), window.divergence.end());
  }
  if (!divergences.empty()) {
    total.top_agreement = static_cast<double>(same) / static_cast<double>(total.predicted);
    total.divergence = quantiles(std::move(divergences));
  }
  return total;
}

}  // namespace sluice::eval
