// Recorded routing with predictions: residuals of logits against those of gate inputs, what is assumed, and
// what is refused.
#include "lab/replay/predicted_steps.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <iostream>
#include <random>

#include "base/error.h"
#include "base/files/scratch_directory.h"
#include "experts/prefetch/residual.h"
#include "lab/replay/assumed_prediction.h"
#include "lab/replay/logit_residual.h"
#include "lab/replay/synthetic_routing.h"
#include "trace/example_traces.h"

namespace sluice::lab::predicted_steps_test {
namespace {

constexpr std::uint64_t kSeed = 20261124;
constexpr std::uint32_t kLayers = 3, kExperts = 5, kWidth = 4;

using Row = std::vector<double>;

// Gate inputs of a few tokens, by layer.
struct Text {
  std::size_t tokens;
  std::vector<Row> inputs;  // by layer (T, d)
};

Text random_text(std::mt19937_64& random, std::size_t tokens) {
  std::normal_distribution<double> normal;
  Text text{tokens, {}};
  for (std::uint32_t layer = 0; layer < kLayers; ++layer) {
    text.inputs.emplace_back();
    for (std::size_t i = 0; i < tokens * kWidth; ++i)
      text.inputs.back().push_back(normal(random) + layer * (i % kWidth));
  }
  return text;
}

Row product(const Row& gate, const Row& inputs) {
  Row logits;
  for (std::size_t at = 0; at < inputs.size(); at += kWidth)
    for (std::size_t e = 0; e < kExperts; ++e) {
      double z = 0;
      for (std::size_t i = 0; i < kWidth; ++i) z += gate[e * kWidth + i] * inputs[at + i];
      logits.push_back(z);
    }
  return logits;
}

// As a trace has it: true logits, and those of the input of the layer before.
RoutedSteps recorded(const Text& text, const std::vector<Row>& gates) {
  RoutedSteps steps{
      .layers = kLayers, .experts = kExperts, .top_k = 2, .logits = true, .predicted = true, .steps = {}};
  RoutedStep& step = steps.steps.emplace_back();
  for (std::uint32_t l = 0; l < kLayers; ++l) {
    RoutedLayer& layer = step.layers.emplace_back();
    layer.begin.assign(text.tokens + 1, 0);
    const Row found = product(gates[l], text.inputs[l]);
    layer.logits.assign(found.begin(), found.end());
    if (l == 0) continue;
    const Row raw = product(gates[l], text.inputs[l - 1]);
    layer.predicted.assign(raw.begin(), raw.end());
  }
  return steps;
}

// A router is linear: its logits of h + mean(h' - h) are its logits of h plus a mean of logits.
TEST(LogitResidual, PredictsWhatTheResidualOfGateInputsPredicts) {
  std::cout << "seed " << kSeed << '\n';
  std::mt19937_64 random(kSeed);
  std::normal_distribution<double> normal;
  for (int round = 0; round < 50; ++round) {
    std::vector<Row> gates(kLayers, Row(kExperts * kWidth));
    for (Row& gate : gates)
      for (double& weight : gate) weight = normal(random);
    const Text calibration = random_text(random, 1 + random() % 9),
               other = random_text(random, 1 + random() % 5);
    experts::ResidualMean mean(kLayers, kWidth);
    for (std::uint32_t l = 0; l + 1 < kLayers; ++l)
      for (std::size_t t = 0; t < calibration.tokens; ++t)
        mean.add(l, std::span(calibration.inputs[l]).subspan(t * kWidth, kWidth),
                 std::span(calibration.inputs[l + 1]).subspan(t * kWidth, kWidth));
    RoutedSteps steps = recorded(other, gates);
    add_residuals(logit_residuals(recorded(calibration, gates)), steps);
    for (std::uint32_t l = 1; l < kLayers; ++l) {
      experts::ResidualPrediction prediction;
      prediction.predict(other.tokens, kExperts, other.inputs[l - 1], mean.mean(l - 1), gates[l]);
      const std::vector<float>& found = steps.steps[0].layers[l].predicted;
      ASSERT_EQ(found.size(), prediction.logits().size());
      for (std::size_t i = 0; i < found.size(); ++i)
        EXPECT_NEAR(found[i], prediction.logits()[i], 1e-5 * (10 + std::abs(found[i])));
    }
  }
}

RoutedSteps routed(std::mt19937_64& random, std::uint32_t tokens) {
  RoutedSteps steps{.layers = 2, .experts = 8, .top_k = 3, .steps = {}};
  RoutedStep& step = steps.steps.emplace_back();
  step.sequences = {{tokens, 0}};
  for (int l = 0; l < 2; ++l) {
    RoutedLayer& layer = step.layers.emplace_back();
    layer.begin = {0};
    for (std::uint32_t t = 0; t < tokens; ++t) {
      std::vector<std::uint16_t> ids = {0, 1, 2, 3, 4, 5, 6, 7};
      std::ranges::shuffle(ids, random);
      std::sort(ids.begin(), ids.begin() + 3);
      for (int i = 0; i < 3; ++i)
        layer.choices.push_back({.expert = ids[static_cast<std::size_t>(i)], .weight = .25f});
      layer.begin.push_back(static_cast<std::uint32_t>(layer.choices.size()));
    }
  }
  return steps;
}

TEST(AssumedPrediction, IsRightAsOftenAsIsSaid) {
  std::cout << "seed " << kSeed << '\n';
  std::mt19937_64 random(kSeed);
  constexpr std::uint32_t kTokens = 3000;
  for (const double right : {0.0, .6, 1.0}) {
    RoutedSteps steps = routed(random, kTokens);
    assume_predictions(right, kSeed, steps);
    EXPECT_TRUE(steps.predicted);
    EXPECT_TRUE(steps.steps[0].layers[0].predicted.empty());
    const RoutedLayer& layer = steps.steps[0].layers[1];
    std::size_t kept = 0;
    for (std::uint32_t t = 0; t < kTokens; ++t) {
      std::vector<std::uint16_t> best = {0, 1, 2, 3, 4, 5, 6, 7};
      std::ranges::stable_sort(best, std::greater(),
                               [&](std::uint16_t e) { return layer.predicted[t * 8 + e]; });
      EXPECT_GT(layer.predicted[t * 8 + best[2]], layer.predicted[t * 8 + best[3]]);  // three are predicted
      for (std::uint32_t c = layer.begin[t]; c < layer.begin[t + 1]; ++c)
        kept += std::count(best.begin(), best.begin() + 3, layer.choices[c].expert) > 0 ? 1 : 0;
    }
    // Five standard deviations.
    EXPECT_NEAR(static_cast<double>(kept) / (3.0 * kTokens), right,
                5 * std::sqrt(right * (1 - right) / (3 * kTokens)));
  }
}

// The errors of logits that are made of normal numbers of the same seed are other numbers.
TEST(AssumedErrors, HaveTheDeviationThatIsSaid) {
  std::cout << "seed " << kSeed << '\n';
  SyntheticTrace trace({.layers = 2, .experts = 8, .top_k = 3, .tokens = 1000, .seed = kSeed}, 10);
  RoutedSteps steps = read_routed_steps(trace);
  assume_errors(.5, kSeed, steps);
  EXPECT_TRUE(steps.predicted);
  double sum = 0, squares = 0, product = 0, all = 0;
  for (const RoutedStep& step : steps.steps) {
    EXPECT_TRUE(step.layers[0].predicted.empty());
    const RoutedLayer& layer = step.layers[1];
    ASSERT_EQ(layer.predicted.size(), layer.logits.size());
    for (std::size_t i = 0; i < layer.logits.size(); ++i) {
      const double error = double{layer.predicted[i]} - layer.logits[i];
      sum += error, squares += error * error, product += error * layer.logits[i], all += 1;
    }
  }
  EXPECT_NEAR(sum / all, 0, .03);
  EXPECT_NEAR(std::sqrt(squares / all), .5, .03);
  EXPECT_NEAR(product / all, 0, .06);
  assume_errors(0, kSeed, steps);
  EXPECT_EQ(steps.steps.back().layers[1].predicted, steps.steps.back().layers[1].logits);
}

TEST(CountTransitions, CountsEveryToken) {
  std::mt19937_64 random(kSeed);
  const RoutedSteps steps = routed(random, 500);
  const experts::ExpertTransitions transitions = count_transitions(steps);
  for (std::uint16_t from = 0; from < 8; ++from) {
    double sum = 0;
    for (std::uint16_t to = 0; to < 8; ++to) sum += transitions.share(0, from, to);
    EXPECT_NEAR(sum, 3, 1e-12);
  }
}

class PredictedSteps : public ::testing::Test {
 protected:
  std::string refusal(const std::string& path, experts::PredictorKind kind, const std::string& other = {}) {
    try {
      read_predicted_steps(path, kind, {}, other);
      return "";
    } catch (const Error& error) {
      return error.what();
    }
  }
  sluice::testing::ScratchDirectory directory_;
};

TEST_F(PredictedSteps, AreThoseOfThePredictorThatIsAsked) {
  const std::string path = directory_.write("two", trace::small_file_2());
  const RoutedSteps steps = read_predicted_steps(path, experts::PredictorKind::kStream, {}, "");
  EXPECT_TRUE(steps.predicted);
  EXPECT_THAT(steps.steps.at(0).layers.at(1).predicted, ::testing::ElementsAre(4, 5, 6));
  EXPECT_TRUE(steps.steps.at(0).layers.at(0).predicted.empty());
  EXPECT_FALSE(read_predicted_steps(path, experts::PredictorKind::kNone, {}, "").predicted);
  EXPECT_THAT(refusal(path, experts::PredictorKind::kGateInput), ::testing::HasSubstr("\"raw\""));
  EXPECT_THAT(refusal(path, experts::PredictorKind::kResidual), ::testing::HasSubstr("\"raw\""));
}

TEST_F(PredictedSteps, AreRefusedOfTracesWithoutThem) {
  const std::string one = directory_.write("one", trace::small_file());
  EXPECT_THAT(refusal(one, experts::PredictorKind::kStream), ::testing::HasSubstr("a trace without them"));
  EXPECT_THAT(refusal(SLUICE_SOURCE_DIR "/tests/data/routing/dsv2lite.first48.mrt.zst",
                      experts::PredictorKind::kStream),
              ::testing::HasSubstr("a .mrt trace, which has none"));
}

}  // namespace
}  // namespace sluice::lab::predicted_steps_test
