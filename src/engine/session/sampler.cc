#include "engine/session/sampler.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/setting.h"
#include "kernels/elementwise/elementwise.h"

namespace sluice::engine {
namespace {

void require(bool legal, Setting setting, const char* expected, double found) {
  if (!legal)
    throw Error(ErrorKind::kUsage, "value out of range")
        .in(setting)
        .expected(expected)
        .found(fmt::format("{}", found));
}

}  // namespace

void SamplerConfig::validate() const {
  require(temperature >= 0 || std::isnan(temperature), Setting::kTemperature, "0 or more", temperature);
  require(std::isfinite(temperature), Setting::kTemperature, "a finite number", temperature);
  require(top_k >= 0, Setting::kTopK, "0 or more", static_cast<double>(top_k));
  require(top_p > 0 && top_p <= 1, Setting::kTopP, "more than 0, at most 1", top_p);
  require(min_p >= 0 && min_p <= 1, Setting::kMinP, "0 to 1", min_p);
  require(std::isfinite(repetition_penalty) && repetition_penalty > 0, Setting::kRepeatPenalty, "more than 0",
          repetition_penalty);
}

SamplerConfig sampler_defaults(const model::GenerationConfig& generation) {
  SamplerConfig config;
  config.repetition_penalty = generation.repetition_penalty;
  if (!generation.do_sample) return config;
  config.temperature = generation.temperature;
  config.top_k = generation.top_k;
  config.top_p = generation.top_p;
  config.min_p = generation.min_p;
  return config;
}

Sampler::Sampler(const SamplerConfig& config) : config_(config), random_(config.seed) { config.validate(); }

double Sampler::uniform() { return static_cast<double>(random_.next() >> 11) * 0x1.0p-53; }

tokenizer::TokenId Sampler::next(std::span<const float> logits, std::span<const tokenizer::TokenId> context,
                                 std::span<Candidate> scratch) {
  for (std::size_t i = 0; i < logits.size(); ++i)
    if (std::isnan(logits[i]))
      throw Error(ErrorKind::kInvalid, fmt::format("the logit of token {} is not a number", i))
          .fix(
              "the weights are damaged or do not fit config.json: get the model again (`sluice verify` tells "
              "whether a packed store is sound)");
  if (config_.takes_likeliest())
    return static_cast<tokenizer::TokenId>(kernels::argmax(logits.data(), logits.size()));

  SLUICE_CHECK(scratch.size() >= logits.size(), "no room for the candidates");
  std::span<Candidate> candidates = scratch.first(logits.size());
  for (std::size_t i = 0; i < logits.size(); ++i)
    candidates[i] = {.logit = logits[i], .id = static_cast<tokenizer::TokenId>(i), .weight = 0};
  if (config_.repetition_penalty != 1.0) {
    const float penalty = static_cast<float>(config_.repetition_penalty);
    for (tokenizer::TokenId id : context) {
      if (id < 0 || static_cast<std::size_t>(id) >= logits.size()) continue;
      Candidate& seen = candidates[static_cast<std::size_t>(id)];
      if (seen.weight != 0) continue;
      seen.weight = 1;
      seen.logit = seen.logit < 0 ? seen.logit * penalty : seen.logit / penalty;
    }
  }
  const auto better = [](const Candidate& a, const Candidate& b) {
    return a.logit != b.logit ? a.logit > b.logit : a.id < b.id;
  };
  if (config_.temperature == 0) return std::min_element(candidates.begin(), candidates.end(), better)->id;

  const auto first = candidates.begin();
  std::size_t sorted = 0;  // candidates in their final place, the best first
  const auto sort_until = [&](std::size_t count) {
    const auto from = first + static_cast<std::ptrdiff_t>(sorted),
               to = first + static_cast<std::ptrdiff_t>(count);
    if (count < candidates.size()) std::nth_element(from, to, candidates.end(), better);
    std::sort(from, to, better);
    sorted = count;
  };
  if (config_.top_k > 0 && static_cast<std::size_t>(config_.top_k) < candidates.size()) {
    sort_until(static_cast<std::size_t>(config_.top_k));
    candidates = candidates.first(sorted);
  }

  // Probabilities relative to the best candidate, which stays under every limit.
  const float best = std::min_element(first, candidates.end(), better)->logit;
  double sum = 0;
  for (Candidate& candidate : candidates) {
    candidate.weight = std::exp((static_cast<double>(candidate.logit) - best) / config_.temperature);
    sum += candidate.weight;
  }
  // Only a few candidates of a large vocabulary are used, so only those are sorted.
  const auto at = [&](std::size_t i) -> const Candidate& {
    if (i >= sorted) sort_until(std::min(candidates.size(), std::max<std::size_t>(64, 8 * sorted)));
    return candidates[i];
  };
  std::size_t end = candidates.size();
  double total = sum;
  if (config_.top_p < 1) {
    // The smallest set whose probability reaches top_p.
    total = 0;
    for (end = 0; end < candidates.size() && total < config_.top_p * sum;) total += at(end++).weight;
  }
  if (config_.min_p > 0) {
    std::size_t likely = 1;
    double reached = at(0).weight;
    while (likely < end && at(likely).weight >= config_.min_p) reached += at(likely++).weight;
    if (likely < end) total = reached;
    end = likely;
  }
  double draw = uniform() * total;
  for (std::size_t i = 0; i + 1 < end; ++i) {
    draw -= at(i).weight;
    if (draw < 0) return at(i).id;
  }
  return at(end - 1).id;
}

}  // namespace sluice::engine
