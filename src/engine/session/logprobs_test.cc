#include "engine/session/logprobs.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>
#include <string>
#include <utility>

namespace sluice::engine {
namespace {

using tokenizer::TokenId;

// Powers of two, so that all shares are known: 8, 4, 2, 1, 1 of 16.
TEST(Logprobs, AreLogarithmsOfShares) {
  const auto ln = [](double x) { return static_cast<float>(std::log(x)); };
  const std::vector<float> logits = {ln(1), ln(8), ln(2), ln(4), ln(1)};
  std::vector<TokenLogprob> best;
  EXPECT_NEAR(token_logprob(logits, 2, 3, best), std::log(2.0 / 16), 1e-6);
  ASSERT_EQ(best.size(), 3u);
  EXPECT_EQ(best[0].id, 1);
  EXPECT_NEAR(best[0].logprob, std::log(0.5), 1e-6);
  EXPECT_EQ(best[1].id, 3);
  EXPECT_EQ(best[2].id, 2);
  EXPECT_NEAR(token_logprob(logits, 4, 0, best), std::log(1.0 / 16), 1e-6);
  EXPECT_TRUE(best.empty());
}

// By another formula: each logit less the logarithm of the sum of exponentials, in long double, and the whole
// vocabulary sorted.
TEST(Logprobs, AgreeWithTheWholeTable) {
  const std::uint64_t seed = std::random_device()();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937_64 random(seed);
  std::normal_distribution<float> normal(0, 4);
  for (int round = 0; round < 200; ++round) {
    std::vector<float> logits(1 + random() % 300);
    for (float& logit : logits) logit = std::round(normal(random) * 4) / 4 + 100.0f;  // ties happen
    if (round % 3 == 0) logits[random() % logits.size()] = -std::numeric_limits<float>::infinity();
    if (std::isinf(*std::ranges::max_element(logits))) continue;
    long double sum = 0;
    for (const float logit : logits) sum += std::exp(static_cast<long double>(logit) - 100);
    std::vector<std::size_t> order(logits.size());
    std::iota(order.begin(), order.end(), 0u);
    std::ranges::stable_sort(order, [&](std::size_t a, std::size_t b) { return logits[a] > logits[b]; });
    const std::size_t chosen = random() % logits.size(), count = random() % 21;
    std::vector<TokenLogprob> best;
    const double found = token_logprob(logits, static_cast<TokenId>(chosen), count, best);
    ASSERT_EQ(best.size(), std::min(count, logits.size()));
    const auto expected = [&](std::size_t id) {
      return static_cast<double>(static_cast<long double>(logits[id]) - 100 - std::log(sum));
    };
    const auto expect_near = [](double a, double b) {
      if (std::isinf(b))
        EXPECT_EQ(a, b);
      else
        EXPECT_NEAR(a, b, 1e-12 * std::abs(b) + 1e-12);
    };
    expect_near(found, expected(chosen));
    for (std::size_t r = 0; r < best.size(); ++r) {
      EXPECT_EQ(best[r].id, static_cast<TokenId>(order[r]));
      expect_near(best[r].logprob, expected(order[r]));
      if (order[r] == chosen) {
        EXPECT_EQ(best[r].logprob, found);  // not a bit apart
      }
    }
  }
}

// The sum is taken in ascending id, in double: another order gives other bits somewhere.
TEST(Logprobs, SumInAscendingId) {
  std::mt19937_64 random(5);
  std::normal_distribution<float> normal(0, 3);
  int differ = 0;
  for (int round = 0; round < 20; ++round) {
    std::vector<float> logits(500);
    for (float& logit : logits) logit = normal(random);
    const float greatest = *std::ranges::max_element(logits);
    const auto sum_of = [&](auto begin, auto end) {
      double sum = 0;
      for (; begin != end; ++begin)
        sum += std::exp(static_cast<double>(*begin) - static_cast<double>(greatest));
      return static_cast<double>(logits[7]) - static_cast<double>(greatest) - std::log(sum);
    };
    std::vector<TokenLogprob> best;
    EXPECT_EQ(token_logprob(logits, 7, 0, best), sum_of(logits.begin(), logits.end()));
    differ += sum_of(logits.begin(), logits.end()) != sum_of(logits.rbegin(), logits.rend()) ? 1 : 0;
  }
  EXPECT_GT(differ, 0);
}

}  // namespace
}  // namespace sluice::engine
