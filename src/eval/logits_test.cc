#include "eval/logits.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <vector>

namespace sluice::eval {
namespace {

// Directly from the definition, in long double, without subtracting the largest logit.
std::vector<long double> softmax(const std::vector<float>& logits) {
  std::vector<long double> p;
  long double sum = 0;
  for (const float logit : logits) sum += p.emplace_back(std::exp(static_cast<long double>(logit)));
  for (long double& value : p) value /= sum;
  return p;
}

TEST(Logits, DivergenceAndLikelihoodAreThoseOfTheDefinition) {
  constexpr unsigned kSeed = 20261122;
  std::mt19937 random(kSeed);
  SCOPED_TRACE(kSeed);
  for (const std::size_t vocab : {1, 2, 7, 1000}) {
    for (const float spread : {0.1f, 3.0f, 12.0f}) {
      std::normal_distribution<float> draw(0, spread);
      std::vector<float> a(vocab), b(vocab);
      for (float& value : a) value = draw(random);
      for (float& value : b) value = draw(random);
      const std::vector<long double> p = softmax(a), q = softmax(b);
      long double kl = 0;
      for (std::size_t i = 0; i < vocab; ++i) kl += p[i] * std::log(p[i] / q[i]);
      EXPECT_NEAR(divergence(Distribution(a), Distribution(b)), static_cast<double>(kl), 1e-11);
      EXPECT_NEAR(divergence(Distribution(a), Distribution(a)), 0, 1e-12);
      const std::size_t token = vocab / 2;
      EXPECT_NEAR(Distribution(a).negative_log_likelihood(static_cast<tokenizer::TokenId>(token)),
                  static_cast<double>(-std::log(p[token])), 1e-11);
    }
  }
}

// A token of probability zero, and logits for which exp() alone would overflow.
TEST(Logits, TakesGreatAndInfiniteLogits) {
  const float none = -std::numeric_limits<float>::infinity();
  const std::vector<float> a = {2000, 2000, none}, b = {-2000, -2000, -1900};
  EXPECT_NEAR(Distribution(a).negative_log_likelihood(0), std::log(2.0), 1e-12);
  EXPECT_NEAR(divergence(Distribution(a), Distribution(b)), 100 - std::log(2.0), 1e-9);
  EXPECT_TRUE(std::isinf(divergence(Distribution(b), Distribution(a))));
}

TEST(Logits, TopIsTheLowestOfEquals) {
  const std::vector<float> logits = {1, 3, 2, 3};
  EXPECT_EQ(Distribution(logits).top(), 1u);
}

// numpy.quantile([1, 2, 4, 8], q), by hand.
TEST(Logits, QuantilesLieBetweenValues) {
  const std::vector<double> values = {1, 2, 4, 8};
  EXPECT_EQ(quantile(values, 0), 1);
  EXPECT_EQ(quantile(values, 0.5), 3);
  EXPECT_NEAR(quantile(values, 0.9), 4 + 0.7 * 4, 1e-12);
  EXPECT_EQ(quantile(values, 1), 8);
  EXPECT_EQ(quantile(std::vector<double>{5}, 0.99), 5);
}

}  // namespace
}  // namespace sluice::eval
