#include "engine/session/sampler.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <random>
#include <set>
#include <vector>

#include "base/error.h"
#include "base/setting.h"

namespace sluice::engine {
namespace {

using tokenizer::TokenId;

const std::vector<float> kLogits = {0.0f, 2.0f, 1.0f, 2.0f, -1.0f};

std::vector<Candidate> room(4000);  // all samplers of this file use it, as those of a batch do

// How often each id is drawn.
std::map<TokenId, double> shares(const SamplerConfig& config, const std::vector<float>& logits,
                                 const std::vector<TokenId>& context = {}) {
  constexpr int kDraws = 40000;
  Sampler sampler(config);
  std::map<TokenId, double> counts;
  for (int i = 0; i < kDraws; ++i)
    counts[sampler.next(logits, context, context.size(), room)] += 1.0 / kDraws;
  return counts;
}

TEST(SamplerTest, GreedyTakesTheLowestIdOfATie) {
  Sampler sampler({});
  EXPECT_EQ(sampler.next(kLogits, {}, 0, room), 1);
}

TEST(SamplerTest, SameSeedSameTokens) {
  SamplerConfig config;
  config.temperature = 1.0;
  config.seed = 7;
  Sampler a(config), b(config);
  config.seed = 8;
  Sampler c(config);
  int different = 0;
  for (int i = 0; i < 200; ++i) {
    const TokenId token = a.next(kLogits, {}, 0, room);
    EXPECT_EQ(token, b.next(kLogits, {}, 0, room));
    different += token != c.next(kLogits, {}, 0, room);
  }
  EXPECT_GT(different, 0);
}

TEST(SamplerTest, SharesAreTheSoftmaxOfLogitsOverTemperature) {
  SamplerConfig config;
  config.temperature = 0.7;
  double sum = 0;
  for (float logit : kLogits) sum += std::exp(logit / 0.7);
  const auto found = shares(config, kLogits);
  for (std::size_t i = 0; i < kLogits.size(); ++i)
    EXPECT_NEAR(found.count(static_cast<TokenId>(i)) ? found.at(static_cast<TokenId>(i)) : 0.0,
                std::exp(kLogits[i] / 0.7) / sum, 0.012);
}

TEST(SamplerTest, TopKKeepsTheLikeliestLowestIdFirst) {
  SamplerConfig config;
  config.temperature = 1.0;
  config.top_k = 1;
  EXPECT_EQ(shares(config, kLogits).size(), 1u);
  EXPECT_TRUE(shares(config, kLogits).contains(1));
  config.top_k = 3;
  const auto found = shares(config, kLogits);
  EXPECT_EQ(found.size(), 3u);
  EXPECT_TRUE(found.contains(1) && found.contains(3) && found.contains(2));
}

TEST(SamplerTest, TopPKeepsTheSmallestSetThatReachesIt) {
  // Shares: 0.5, 0.25, 0.125, 0.125.
  const std::vector<float> logits = {std::log(4.0f), std::log(2.0f), 0.0f, 0.0f};
  SamplerConfig config;
  config.temperature = 1.0;
  config.top_p = 0.49;
  EXPECT_EQ(shares(config, logits).size(), 1u);
  config.top_p = 0.6;
  EXPECT_EQ(shares(config, logits).size(), 2u);
  config.top_p = 1.0;
  EXPECT_EQ(shares(config, logits).size(), 4u);
}

TEST(SamplerTest, MinPIsRelativeToTheLikeliest) {
  const std::vector<float> logits = {std::log(8.0f), std::log(4.0f), std::log(1.0f)};
  SamplerConfig config;
  config.temperature = 1.0;
  config.min_p = 0.3;
  EXPECT_EQ(shares(config, logits).size(), 2u);
  config.min_p = 1.0;
  EXPECT_EQ(shares(config, logits).size(), 1u);
}

TEST(SamplerTest, RepetitionPenaltyDividesPositiveAndMultipliesNegativeLogitsOnce) {
  SamplerConfig config;
  config.repetition_penalty = 2.0;
  Sampler sampler(config);
  // 1 and 3 fall from 2 to 1 (once, though 1 is there twice); 2 stays at 1: a tie, the lowest id wins.
  EXPECT_EQ(sampler.next(kLogits, std::vector<TokenId>{1, 1, 3}, 3, room), 1);
  // 4 falls from −1 to −2.
  EXPECT_EQ(sampler.next(std::vector<float>{-1.5f, -1.0f}, std::vector<TokenId>{1}, 1, room), 0);
}

TEST(SamplerTest, AddingAConstantToAllLogitsChangesNothing) {
  SamplerConfig config;
  config.temperature = 0.9;
  config.top_p = 0.8;
  std::vector<float> shifted = kLogits;
  for (float& logit : shifted) logit += 64.0f;
  Sampler a(config), b(config);
  for (int i = 0; i < 500; ++i) EXPECT_EQ(a.next(kLogits, {}, 0, room), b.next(shifted, {}, 0, room));
}

TEST(SamplerTest, NaNIsAnError) {
  std::vector<float> logits = kLogits;
  logits[2] = std::numeric_limits<float>::quiet_NaN();
  Sampler sampler({});
  EXPECT_THROW(sampler.next(logits, {}, 0, room), Error);
}

TEST(SamplerTest, BadValuesNameTheirFlag) {
  const auto expect_error = [](void (*change)(SamplerConfig&), const char* flag) {
    SamplerConfig config;
    change(config);
    try {
      config.validate();
      FAIL() << flag;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kUsage);
      EXPECT_EQ(with_names(error.where()), flag);
    }
  };
  expect_error([](SamplerConfig& c) { c.temperature = -1; }, "--temp");
  expect_error([](SamplerConfig& c) { c.temperature = std::numeric_limits<double>::infinity(); }, "--temp");
  expect_error([](SamplerConfig& c) { c.top_k = -1; }, "--top-k");
  expect_error([](SamplerConfig& c) { c.top_p = 0; }, "--top-p");
  expect_error([](SamplerConfig& c) { c.min_p = 2; }, "--min-p");
  expect_error([](SamplerConfig& c) { c.repetition_penalty = 0; }, "--repeat-penalty");
  expect_error([](SamplerConfig& c) { c.presence_penalty = 2.01; }, "--presence-penalty");
  expect_error([](SamplerConfig& c) { c.frequency_penalty = -2.01; }, "--frequency-penalty");
  expect_error([](SamplerConfig& c) { c.frequency_penalty = std::nan(""); }, "--frequency-penalty");
  expect_error([](SamplerConfig& c) { c.bias = {{3, 0}, {4, 100.5f}}; }, "--logit-bias");
  SamplerConfig ends;
  ends.presence_penalty = -2;
  ends.frequency_penalty = 2;
  ends.bias = {{3, -100}, {4, 100}};
  ends.validate();
}

TEST(SamplerTest, DefaultsFollowGenerationConfig) {
  model::GenerationConfig generation;
  generation.temperature = 0.3;
  generation.top_p = 0.95;
  EXPECT_EQ(sampler_defaults(generation).temperature, 0.0);
  generation.do_sample = true;
  EXPECT_EQ(sampler_defaults(generation).temperature, 0.3);
  EXPECT_EQ(sampler_defaults(generation).top_p, 0.95);
  EXPECT_EQ(sampler_defaults(generation).top_k, 50);
}

// What the settings say, in double and by whole tables: probabilities by id.
std::vector<double> probabilities(const SamplerConfig& config, const std::vector<float>& logits,
                                  const std::vector<TokenId>& context, std::size_t prompt) {
  const std::size_t n = logits.size();
  std::vector<double> x(logits.begin(), logits.end());
  for (const LogitBias& one : config.bias)
    x[static_cast<std::size_t>(one.id)] += one.bias == -100 ? -HUGE_VAL : static_cast<double>(one.bias);
  for (std::size_t i = 0; i < n; ++i) {
    const auto id = static_cast<TokenId>(i);
    const auto answer = context.begin() + static_cast<std::ptrdiff_t>(prompt);
    if (std::count(context.begin(), context.end(), id) > 0)
      x[i] = x[i] < 0 ? x[i] * config.repetition_penalty : x[i] / config.repetition_penalty;
    const auto times = static_cast<double>(std::count(answer, context.end(), id));
    x[i] -= config.frequency_penalty * times + (times > 0 ? config.presence_penalty : 0);
  }
  std::vector<std::size_t> order(n);
  std::iota(order.begin(), order.end(), 0u);
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return x[a] > x[b]; });
  std::vector<double> p(n, 0.0);
  if (config.temperature == 0) {
    p[order[0]] = 1;
    return p;
  }
  std::size_t count = config.top_k > 0 ? std::min(n, static_cast<std::size_t>(config.top_k)) : n;
  double sum = 0;
  for (std::size_t r = 0; r < count; ++r) sum += std::exp((x[order[r]] - x[order[0]]) / config.temperature);
  double before = 0, kept = 0;  // shares of what is better, within top-k
  for (std::size_t r = 0; r < count; ++r) {
    const double weight = std::exp((x[order[r]] - x[order[0]]) / config.temperature);
    if (before < config.top_p * sum && (r == 0 || weight >= config.min_p)) kept += p[order[r]] = weight;
    before += weight;
  }
  for (double& one : p) one /= kept;
  return p;
}

SamplerConfig random_config(std::mt19937_64& random, std::size_t vocab) {
  const auto one_of = [&](std::initializer_list<double> values) {
    return *(values.begin() + static_cast<std::ptrdiff_t>(random() % values.size()));
  };
  SamplerConfig config;
  config.temperature = one_of({0, 0.5, 1, 2});
  config.top_k = static_cast<std::int64_t>(one_of({0, 1, 3, 20}));
  config.top_p = one_of({1, 1, 0.3, 0.9});
  config.min_p = one_of({0, 0, 0.05, 0.5});
  config.repetition_penalty = one_of({1, 1, 2, 0.5});
  config.presence_penalty = one_of({0, 0.5, -1, 2});
  config.frequency_penalty = one_of({0, 0.25, -0.5, 2});
  for (std::size_t i = random() % 4; i > 0; --i)
    config.bias.push_back({static_cast<TokenId>(random() % vocab),
                           static_cast<float>(one_of({-100, -100, -2.5, 0, 1.5, 100}))});
  config.seed = random();
  return config;
}

// The relative entropy of two shares. That n draws of a share `expected` give one at least so far from it
// has a probability of at most exp(-n * distance) (Chernoff), also where it is rare; near a half six spreads
// are 18 of it.
constexpr double kSixSpreads = 18;
double distance(double found, double expected) {
  const auto term = [](double a, double b) { return a < 1e-12 ? 0.0 : a * std::log(a / b); };
  if (expected >= 1 - 1e-12) return found < 1 - 1e-9 ? INFINITY : 0;
  return term(found, expected) + term(1 - found, 1 - expected);
}

// Logits are multiples of 1/8, and so are all penalties: sums are exact, and ties happen.
TEST(SamplerTest, DrawsWhatTheFormulasSay) {
  const std::uint64_t seed = std::random_device()();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937_64 random(seed);
  std::size_t forbidden = 0;
  for (int round = 0; round < 300; ++round) {
    SCOPED_TRACE("round " + std::to_string(round));
    std::vector<float> logits(8 + random() % 5);
    for (float& logit : logits) logit = static_cast<float>(static_cast<int>(random() % 65) - 32) / 8;
    std::vector<TokenId> context(random() % 12);
    for (TokenId& id : context) id = static_cast<TokenId>(random() % logits.size());
    const std::size_t prompt = random() % (context.size() + 1);
    const SamplerConfig config = random_config(random, logits.size());
    const std::vector<double> expected = probabilities(config, logits, context, prompt);
    Sampler sampler(config);
    constexpr int kDraws = 1500;
    std::vector<double> found(logits.size(), 0.0);
    for (int i = 0; i < kDraws; ++i)
      found[static_cast<std::size_t>(sampler.next(logits, context, prompt, room))] += 1.0 / kDraws;
    for (std::size_t i = 0; i < logits.size(); ++i) {
      EXPECT_LT(kDraws * distance(found[i], expected[i]), kSixSpreads) << i << ": " << found[i];
      if (expected[i] == 0) {
        EXPECT_EQ(found[i], 0) << i;
      }
    }
    for (const LogitBias& one : config.bias) forbidden += one.bias == LogitBias::kForbids ? 1 : 0;
    if (HasFailure()) return;
  }
  EXPECT_GT(forbidden, 50u);
}

TEST(SamplerTest, TheAnswerAloneIsPenalizedByPresenceAndFrequency) {
  SamplerConfig config;
  config.presence_penalty = 0.75;
  config.frequency_penalty = 0.5;
  Sampler sampler(config);
  const std::vector<float> logits = {0.0f, 2.0f, 1.0f};
  EXPECT_EQ(sampler.next(logits, std::vector<TokenId>{1, 1}, 2, room), 1);  // both are the prompt
  EXPECT_EQ(sampler.next(logits, std::vector<TokenId>{1, 1}, 1, room), 2);  // 2 − 0.75 − 0.5 = 0.75
  config.presence_penalty = 0.5;
  EXPECT_EQ(Sampler(config).next(logits, std::vector<TokenId>{1, 1}, 1, room), 1);  // a tie
}

TEST(SamplerTest, ForbiddenTokensAreNeverDrawn) {
  SamplerConfig config;
  config.temperature = 2;
  config.bias = {{1, -100}, {3, -100}, {9, 5}};  // 9 is none
  const auto found = shares(config, kLogits);
  EXPECT_EQ(found.size(), 3u);
  EXPECT_FALSE(found.contains(1) || found.contains(3));
  config.bias = {{0, -100}, {1, -100}, {2, -100}, {3, -100}, {4, -100}};
  for (const double temperature : {0.0, 1.0}) {
    config.temperature = temperature;
    EXPECT_THROW(Sampler(config).next(kLogits, {}, 0, room), Error);
  }
}

// Only what may be drawn is sorted; here all of it is.
TEST(SamplerTest, DrawsFromALargeVocabularyAsIfAllOfItWereSorted) {
  const std::uint64_t seed = 11;
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937_64 random(seed);
  std::normal_distribution<float> normal(0, 2);
  std::size_t latest = 0;  // in the order of likelihood
  for (int round = 0; round < 200; ++round) {
    std::vector<float> logits(3000);
    for (float& logit : logits) logit = std::round(normal(random) * 64) / 64;  // ties happen
    SamplerConfig config;
    config.temperature = round % 2 == 0 ? 0.7 : 3.0;
    config.top_k = round % 3 == 0 ? 700 : 0;
    config.top_p = round % 5 == 0 ? 0.95 : 1.0;
    config.min_p = round % 7 == 0 ? 0.001 : 0.0;
    config.seed = random();
    std::vector<int> order(logits.size());
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](int a, int b) {
      return logits[static_cast<std::size_t>(a)] > logits[static_cast<std::size_t>(b)];
    });
    if (config.top_k > 0) order.resize(static_cast<std::size_t>(config.top_k));
    std::vector<double> weights;
    double sum = 0;
    for (const int id : order) {
      const double best = logits[static_cast<std::size_t>(order[0])];
      weights.push_back(std::exp((logits[static_cast<std::size_t>(id)] - best) / config.temperature));
      sum += weights.back();
    }
    std::size_t end = 0;
    double total = 0;
    while (end < weights.size() && (config.top_p == 1.0 || total < config.top_p * sum) &&
           (end == 0 || weights[end] >= config.min_p))
      total += weights[end++];
    const int drawn = Sampler(config).next(logits, {}, 0, room);
    const auto place = static_cast<std::size_t>(std::find(order.begin(), order.end(), drawn) - order.begin());
    ASSERT_LT(place, end);
    latest = std::max(latest, place);
    // splitmix64 of the seed, the top 53 bits: that share of the weights lies before or in the drawn one.
    std::uint64_t z = config.seed + 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    const double draw = static_cast<double>((z ^ (z >> 31)) >> 11) * 0x1.0p-53 * total;
    const double before =
        std::accumulate(weights.begin(), weights.begin() + static_cast<std::ptrdiff_t>(place), 0.0);
    EXPECT_LE(before, draw + 1e-9 * total);
    EXPECT_GE(before + weights[place], draw - 1e-9 * total);
  }
  EXPECT_GT(latest, 512u);  // more than one piece was sorted
}

TEST(Sampler, TakesAllowedTokensAlone) {
  const std::vector<float> logits = {5, 4, 3, 2, 1};
  std::vector<Candidate> scratch(logits.size());
  const std::vector<std::uint64_t> three = {0b11010}, only = {0b00100}, none = {0};
  Sampler greedy({.temperature = 0}), drawn({.temperature = 1, .seed = 7}),
      beside({.temperature = 1, .seed = 7});
  EXPECT_EQ(greedy.next(logits, {}, 0, scratch, three), 1);
  EXPECT_EQ(greedy.next(logits, {}, 0, scratch, only), 2);
  EXPECT_THROW(greedy.next(logits, {}, 0, scratch, none), Error);
  std::set<tokenizer::TokenId> seen;
  for (int i = 0; i < 500; ++i) seen.insert(drawn.next(logits, {}, 0, scratch, three));
  EXPECT_EQ(seen, (std::set<tokenizer::TokenId>{1, 3, 4}));
  EXPECT_THROW(drawn.next(logits, {}, 0, scratch, none), Error);
  // An only one is taken without a draw: what follows is as without it.
  Sampler again({.temperature = 1, .seed = 7});
  EXPECT_EQ(again.next(logits, {}, 0, scratch, only), 2);
  for (int i = 0; i < 20; ++i)
    EXPECT_EQ(again.next(logits, {}, 0, scratch, three), beside.next(logits, {}, 0, scratch, three));
}

}  // namespace
}  // namespace sluice::engine
