#include "engine/session/sampler.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <optional>

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

void check_are_numbers(std::span<const float> logits) {
  std::uint32_t others = 0;  // counted without a way out, so that a compiler takes several logits at a time
  for (const float logit : logits) others += logit != logit ? 1 : 0;
  if (others == 0) return;
  for (std::size_t i = 0; i < logits.size(); ++i)
    if (std::isnan(logits[i]))
      throw Error(ErrorKind::kInvalid, fmt::format("the logit of token {} is not a number", i))
          .fix(
              "the weights are damaged or do not fit config.json: get the model again (`sluice verify` tells "
              "whether a packed store is sound)");
}

// The candidate of a token; null where the vocabulary has no such token.
Candidate* find(std::span<Candidate> candidates, tokenizer::TokenId id) {
  const bool there = id >= 0 && static_cast<std::size_t>(id) < candidates.size();
  return there ? &candidates[static_cast<std::size_t>(id)] : nullptr;
}

void add_bias(std::span<Candidate> candidates, std::span<const LogitBias> biases) {
  for (const LogitBias& one : biases) {
    Candidate* const candidate = find(candidates, one.id);
    if (candidate == nullptr) continue;
    if (one.bias == LogitBias::kForbids)
      candidate->logit = -std::numeric_limits<float>::infinity();
    else
      candidate->logit += one.bias;
  }
}

// Makes tokens that stand in the context less likely, each once.
void penalize(std::span<Candidate> candidates, std::span<const tokenizer::TokenId> context,
              double repetition_penalty) {
  if (repetition_penalty == 1.0) return;
  const float penalty = static_cast<float>(repetition_penalty);
  for (tokenizer::TokenId id : context) {
    Candidate* const seen = find(candidates, id);
    if (seen == nullptr || seen->weight != 0) continue;
    seen->weight = 1;
    seen->logit = seen->logit < 0 ? seen->logit * penalty : seen->logit / penalty;
  }
}

// Makes tokens of the answer less likely, by how often they are there.
void penalize_answer(std::span<Candidate> candidates, std::span<const tokenizer::TokenId> answer,
                     const SamplerConfig& config) {
  if (config.presence_penalty == 0 && config.frequency_penalty == 0) return;
  for (tokenizer::TokenId id : answer)
    if (Candidate* const seen = find(candidates, id)) seen->weight = 0;
  for (tokenizer::TokenId id : answer)
    if (Candidate* const seen = find(candidates, id)) seen->weight += 1;
  for (tokenizer::TokenId id : answer) {
    Candidate* const seen = find(candidates, id);
    if (seen == nullptr || seen->weight == 0) continue;
    const double less = config.presence_penalty + config.frequency_penalty * seen->weight;
    seen->logit = static_cast<float>(static_cast<double>(seen->logit) - less);
    seen->weight = 0;
  }
}

bool is_allowed(std::span<const std::uint64_t> allowed, std::size_t id) {
  return id / 64 < allowed.size() && (allowed[id / 64] >> (id % 64) & 1) != 0;
}

void forbid_others(std::span<Candidate> candidates, std::span<const std::uint64_t> allowed) {
  if (allowed.empty()) return;
  for (std::size_t id = 0; id < candidates.size(); ++id)
    if (!is_allowed(allowed, id)) candidates[id].logit = -std::numeric_limits<float>::infinity();
}

// The only token that is allowed among `count`, if there is one.
std::optional<tokenizer::TokenId> only_allowed(std::span<const std::uint64_t> allowed, std::size_t count) {
  std::optional<tokenizer::TokenId> only;
  for (std::size_t word = 0; word < allowed.size(); ++word) {
    if (allowed[word] == 0) continue;
    const std::size_t id = word * 64 + static_cast<std::size_t>(std::countr_zero(allowed[word]));
    if (only || std::popcount(allowed[word]) > 1 || id >= count) return std::nullopt;
    only = static_cast<tokenizer::TokenId>(id);
  }
  return only;
}

[[noreturn]] void no_token_is_left() {
  throw Error(ErrorKind::kInvalid, "no token is left to choose from")
      .in(Setting::kLogitBias)
      .expected("a token that is not forbidden")
      .found("every token forbidden")
      .fix("forbid fewer tokens");
}

tokenizer::TokenId likeliest_of(std::span<const float> logits, std::span<const std::uint64_t> allowed) {
  if (allowed.empty()) return static_cast<tokenizer::TokenId>(kernels::argmax(logits.data(), logits.size()));
  std::optional<std::size_t> best;
  for (std::size_t id = 0; id < logits.size(); ++id)
    if (is_allowed(allowed, id) && (!best || logits[id] > logits[*best])) best = id;
  if (!best) no_token_is_left();
  return static_cast<tokenizer::TokenId>(*best);
}

// Without the forbidden ones, in the same order.
std::span<Candidate> left_of(std::span<Candidate> candidates, std::span<const LogitBias> biases,
                             bool some_forbidden) {
  if (!some_forbidden && std::ranges::find(biases, LogitBias::kForbids, &LogitBias::bias) == biases.end())
    return candidates;
  const auto [gone, end] =
      std::ranges::remove(candidates, -std::numeric_limits<float>::infinity(), &Candidate::logit);
  const auto left = static_cast<std::size_t>(gone - candidates.begin());
  if (left == 0) no_token_is_left();
  return candidates.first(left);
}

// Candidates from the likeliest down. Only a few of a large vocabulary are used, so only those are sorted.
class Ranking {
 public:
  explicit Ranking(std::span<Candidate> candidates) : candidates_(candidates) {}

  std::size_t size() const { return candidates_.size(); }
  const Candidate& likeliest() const {
    return *std::min_element(candidates_.begin(), candidates_.end(), better);
  }
  void keep(std::size_t count) {  // the first `count`
    if (count >= size()) return;
    sort_until(count);
    candidates_ = candidates_.first(count);
  }
  // Weights are probabilities relative to the likeliest, which so stays under every limit. Returns their sum.
  double weigh(double temperature) {
    const float best = likeliest().logit;
    double sum = 0;
    for (Candidate& candidate : candidates_) {
      candidate.weight = std::exp((static_cast<double>(candidate.logit) - best) / temperature);
      sum += candidate.weight;
    }
    return sum;
  }
  const Candidate& operator[](std::size_t i) {
    if (i >= sorted_) sort_until(std::min(size(), std::max<std::size_t>(64, 8 * sorted_)));
    return candidates_[i];
  }

 private:
  static bool better(const Candidate& a, const Candidate& b) {
    return a.logit != b.logit ? a.logit > b.logit : a.id < b.id;
  }
  void sort_until(std::size_t count) {
    const auto from = candidates_.begin() + static_cast<std::ptrdiff_t>(sorted_),
               to = candidates_.begin() + static_cast<std::ptrdiff_t>(count);
    if (count < size()) std::nth_element(from, to, candidates_.end(), better);
    std::sort(from, to, better);
    sorted_ = count;
  }

  std::span<Candidate> candidates_;
  std::size_t sorted_ = 0;  // candidates in their final place
};

struct Drawn {  // the first `count` candidates, which weigh `weight` together, are drawn from
  std::size_t count;
  double weight;
};

Drawn limit(Ranking& ranking, double sum, const SamplerConfig& config) {
  Drawn drawn{ranking.size(), sum};
  if (config.top_p < 1) {
    // The smallest set whose probability reaches top_p.
    drawn = {0, 0};
    while (drawn.count < ranking.size() && drawn.weight < config.top_p * sum)
      drawn.weight += ranking[drawn.count++].weight;
  }
  if (config.min_p > 0) {
    std::size_t likely = 1;
    double reached = ranking[0].weight;
    while (likely < drawn.count && ranking[likely].weight >= config.min_p)
      reached += ranking[likely++].weight;
    if (likely < drawn.count) drawn = {likely, reached};
  }
  return drawn;
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
  require(std::abs(presence_penalty) <= 2, Setting::kPresencePenalty, "-2 to 2", presence_penalty);
  require(std::abs(frequency_penalty) <= 2, Setting::kFrequencyPenalty, "-2 to 2", frequency_penalty);
  for (const LogitBias& one : bias)
    require(std::abs(one.bias) <= 100, Setting::kLogitBias, "numbers from -100 to 100",
            static_cast<double>(one.bias));
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

std::span<Candidate> Sampler::adjusted(std::span<const float> logits,
                                       std::span<const tokenizer::TokenId> context, std::size_t prompt,
                                       std::span<Candidate> scratch,
                                       std::span<const std::uint64_t> allowed) const {
  SLUICE_CHECK(scratch.size() >= logits.size(), "no room for the candidates");
  const std::span<Candidate> candidates = scratch.first(logits.size());
  for (std::size_t i = 0; i < logits.size(); ++i)
    candidates[i] = {.logit = logits[i], .id = static_cast<tokenizer::TokenId>(i), .weight = 0};
  add_bias(candidates, config_.bias);
  forbid_others(candidates, allowed);
  penalize(candidates, context, config_.repetition_penalty);
  penalize_answer(candidates, context.subspan(std::min(prompt, context.size())), config_);
  return left_of(candidates, config_.bias, !allowed.empty());
}

tokenizer::TokenId Sampler::next(std::span<const float> logits, std::span<const tokenizer::TokenId> context,
                                 std::size_t prompt, std::span<Candidate> scratch,
                                 std::span<const std::uint64_t> allowed) {
  check_are_numbers(logits);
  if (const auto only = only_allowed(allowed, logits.size())) return *only;
  if (config_.takes_likeliest()) return likeliest_of(logits, allowed);

  Ranking ranking(adjusted(logits, context, prompt, scratch, allowed));
  if (config_.temperature == 0) return ranking.likeliest().id;

  if (config_.top_k > 0) ranking.keep(static_cast<std::size_t>(config_.top_k));
  const double sum = ranking.weigh(config_.temperature);
  const Drawn drawn = limit(ranking, sum, config_);
  double draw = uniform() * drawn.weight;
  for (std::size_t i = 0; i + 1 < drawn.count; ++i) {
    draw -= ranking[i].weight;
    if (draw < 0) return ranking[i].id;
  }
  return ranking[drawn.count - 1].id;
}

}  // namespace sluice::engine
