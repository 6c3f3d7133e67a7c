#include "experts/cache/workload/reuse_forecast.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <set>
#include <vector>

namespace sluice::experts {
namespace {

struct Past {
  std::vector<std::uint16_t> used;
  std::vector<std::uint32_t> tokens;
  std::uint32_t prompt = 0;
};

// The same forecast, made of the whole history after each event, in double precision.
class ReuseByHistory {
 public:
  explicit ReuseByHistory(std::size_t experts) : experts_(experts) {}

  std::vector<double> add(const Past& event) {
    history_.push_back(event);
    constexpr std::size_t kHorizon = ReuseForecast::kHorizon;
    if (history_.size() > kHorizon) learn(features_[history_.size() - 1 - kHorizon]);
    std::vector<std::vector<double>> features;
    std::vector<double> scores;
    for (std::size_t e = 0; e < experts_; ++e) {
      features.push_back(features_of(e));
      double sum = 0;
      for (std::size_t f = 0; f < features.back().size(); ++f) sum += features.back()[f] * weights_[f];
      scores.push_back(sum);
    }
    features_.push_back(features);
    return scores;
  }

 private:
  static bool uses(const Past& event, std::size_t e) {
    return std::ranges::find(event.used, e) != event.used.end();
  }
  static double uses_of(const Past& event, std::size_t e) {
    const auto at = std::ranges::find(event.used, e);
    if (at == event.used.end()) return 0;
    return event.prompt > 0 ? event.tokens[static_cast<std::size_t>(at - event.used.begin())] : 1;
  }
  static double length(const Past& event) { return event.prompt > 0 ? event.prompt : 1; }
  static double odds(double p) {
    p = std::clamp(p, 0., 1.);
    return std::log((p + .003) / (1 - p + .003));
  }

  double average(std::size_t e) const {
    double uses = 0, time = 0, rate = 0;
    for (const Past& event : history_) {
      uses += uses_of(event, e);
      time += length(event);
      double all = 0;
      for (const std::uint16_t id : event.used) all += uses_of(event, id);
      if (!event.used.empty()) rate = all / length(event);
    }
    return std::min(1., (uses + .5 * rate / static_cast<double>(experts_)) / (time + .5));
  }

  std::vector<double> features_of(std::size_t e) const {
    std::vector<double> x = {1};
    for (const double half_life : {4, 16, 64, 256}) {
      double sum = 0, since = 0;
      for (auto event = history_.rbegin(); event != history_.rend(); ++event) {
        const double keep = std::exp2(-length(*event) / half_life);
        sum += std::exp2(-since / half_life) * (1 - keep) * uses_of(*event, e) / length(*event);
        since += length(*event);
      }
      x.push_back(odds(sum));
    }
    x.push_back(odds(average(e)));
    std::size_t age = 0;
    while (age < history_.size() && !uses(history_[history_.size() - 1 - age], e)) ++age;
    if (age == history_.size()) age = 1000;
    x.push_back(age == 0);
    x.push_back(age == 1);
    x.push_back(.3 * std::log(1. + static_cast<double>(age)));
    double follows = 0;
    const std::vector<std::uint16_t>& last = history_.back().used;
    for (const std::uint16_t before : last) {
      double pairs = 0, all = 0;
      for (std::size_t i = 1; i < history_.size(); ++i) {
        if (!uses(history_[i - 1], before) || history_[i].prompt > 1) continue;
        all += 1;
        pairs += uses(history_[i], e);
      }
      follows += (pairs + 8 * average(e)) / (all + 8) / static_cast<double>(last.size());
    }
    x.push_back(odds(last.empty() ? average(e) : follows));
    return x;
  }

  void learn(const std::vector<std::vector<double>>& features) {
    std::vector<double> gradient(weights_.size());
    for (std::size_t e = 0; e < experts_; ++e) {
      double sum = 0, came = 0;
      for (std::size_t f = 0; f < weights_.size(); ++f) sum += features[e][f] * weights_[f];
      for (std::size_t i = history_.size() - ReuseForecast::kHorizon; i < history_.size(); ++i)
        if (uses(history_[i], e)) came = 1;
      for (std::size_t f = 0; f < weights_.size(); ++f)
        gradient[f] += (came - 1 / (1 + std::exp(-sum))) * features[e][f] / static_cast<double>(experts_);
    }
    for (std::size_t f = 0; f < weights_.size(); ++f) {
      squares_[f] += gradient[f] * gradient[f];
      weights_[f] += .05 * gradient[f] / std::sqrt(squares_[f]);
    }
  }

  const std::size_t experts_;
  std::vector<Past> history_;
  std::vector<std::vector<std::vector<double>>> features_;  // by event, expert
  std::vector<double> weights_ = {1.1, .25, .27, .1, -.2, -.05, .34, .14, .22, .6};
  std::vector<double> squares_ = std::vector<double>(10, 1e-3);
};

Past drawn_event(std::mt19937_64& random, std::size_t experts) {
  Past event;
  if (random() % 12 == 0) event.prompt = 1 + static_cast<std::uint32_t>(random() % 40);
  std::set<std::uint16_t> used;
  const std::size_t most = event.prompt > 0 ? experts : std::min<std::size_t>(experts, 4);
  for (std::size_t n = random() % (most + 1); used.size() < n;)
    used.insert(static_cast<std::uint16_t>(std::min(random() % experts, random() % experts)));
  event.used.assign(used.begin(), used.end());
  for (std::size_t i = 0; i < used.size(); ++i)
    event.tokens.push_back(event.prompt > 0 ? 1 + static_cast<std::uint32_t>(random() % event.prompt) : 1);
  return event;
}

TEST(ReuseForecast, IsWhatTheWholeHistorySays) {
  for (std::uint64_t seed = 1; seed <= 8; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 random(seed);
    const std::size_t experts = 1 + random() % 20;
    ReuseForecast forecast;
    forecast.grow(experts);
    ReuseByHistory reference(experts);
    for (int e = 0; e < 150; ++e) {
      const Past event = drawn_event(random, experts);
      forecast.on_event({.used = event.used, .tokens = event.tokens, .prompt_tokens = event.prompt});
      const std::vector<double> wanted = reference.add(event);
      ASSERT_EQ(forecast.experts(), experts);
      for (std::size_t i = 0; i < experts; ++i)
        ASSERT_NEAR(forecast.score(i), wanted[i], 2e-3) << "event " << e << ", expert " << i;
    }
  }
}

// Sets in turns: who was used is not who comes next, and the weights say so in the end.
TEST(ReuseForecast, LearnsWhatFollows) {
  ReuseForecast forecast;
  const std::vector<std::uint16_t> turns[] = {{0, 1}, {2, 3},   {4, 5},   {6, 7},
                                              {8, 9}, {10, 11}, {12, 13}, {14, 15}};
  const std::vector<float> first(forecast.weights().begin(), forecast.weights().end());
  for (int e = 0; e < 400; ++e) forecast.on_event({.used = turns[e % 8], .tokens = {}});
  EXPECT_FALSE(std::ranges::equal(first, forecast.weights()));
  // The last event was {14, 15}; {0, 1} is next, and {14, 15} come last of all.
  for (std::size_t other = 2; other < 16; ++other)
    EXPECT_GT(forecast.score(0), forecast.score(other)) << other;
}

TEST(ReuseForecast, APromptCountsItsTokens) {
  ReuseForecast forecast;
  const std::vector<std::uint16_t> used = {0, 1, 2};
  const std::vector<std::uint32_t> tokens = {1, 50, 7};
  forecast.on_event({.used = used, .tokens = tokens, .prompt_tokens = 60});
  EXPECT_GT(forecast.score(1), forecast.score(2));
  EXPECT_GT(forecast.score(2), forecast.score(0));
}

TEST(ReuseForecast, ExpertsMayComeLate) {
  ReuseForecast forecast;
  for (std::uint16_t id = 0; id < 9; ++id) {
    forecast.on_event({.used = std::vector<std::uint16_t>{id}, .tokens = {}});
    EXPECT_EQ(forecast.experts(), id + 1u);
  }
  for (std::size_t i = 0; i < 9; ++i) EXPECT_TRUE(std::isfinite(forecast.score(i)));
}

// Counts of pairs are halved before they overflow, and nothing is forgotten by that: the experts that come in
// turns stay as likely as they were.
TEST(ReuseForecast, RunsForAnyTime) {
  ReuseForecast forecast;
  forecast.grow(3);
  const std::vector<std::uint16_t> first = {0}, second = {1};
  float before = 0;
  for (int round = 0; round < 70000; ++round) {
    forecast.on_event({.used = first, .tokens = {}});
    const float more = forecast.score(1) - forecast.score(2);  // 2 never comes
    if (round > 1000) {
      ASSERT_GT(more, 0) << round;
      ASSERT_NEAR(more, before, .01f) << round;
    }
    before = more;
    forecast.on_event({.used = second, .tokens = {}});
  }
}

TEST(ReuseForecast, ManyExpertsHaveNoPairs) {
  constexpr std::size_t kMost = ReuseForecast::kMostPaired;
  EXPECT_GT(ReuseForecast::bytes(kMost), 2 * kMost * kMost);
  EXPECT_LT(ReuseForecast::bytes(kMost + 1), ReuseForecast::bytes(kMost) / 4);
  ReuseForecast forecast;
  forecast.grow(kMost + 1);
  const std::vector<std::uint16_t> last = {static_cast<std::uint16_t>(kMost)};
  for (int i = 0; i < 3; ++i) forecast.on_event({.used = last, .tokens = {}});
  EXPECT_GT(forecast.score(kMost), forecast.score(0));
}

}  // namespace
}  // namespace sluice::experts
