// The fitted routing is like the recorded one, and its predictions are as good as the paper's.
#include "reproduce/smoe/smoe_routing.h"

#include <gtest/gtest.h>

#include <cmath>

#include "lab/replay/assumed_prediction.h"
#include "lab/replay/routed_steps.h"
#include "reproduce/smoe/top_score_accuracy.h"

namespace sluice::reproduce {
namespace {

constexpr double kNear = .01;

lab::RoutingFacts facts_of(const lab::SyntheticRouting& settings) {
  lab::SyntheticTrace trace(settings, 0);
  return lab::facts_of(trace);
}

TEST(SmoeRouting, HasTheFiguresOfTheRecordedOne) {
  const lab::RoutingFacts facts = facts_of(smoe_routing(SmoeRoutingKind::kFitted));
  EXPECT_NEAR(facts.f_1, .40, kNear);
  EXPECT_NEAR(facts.mass, .333, kNear);
  EXPECT_NEAR(facts.overlap, .277, kNear);
  EXPECT_EQ(kRecordedFacts.f_1, .40);
  EXPECT_EQ(kRecordedFacts.mass, .333);
  EXPECT_EQ(kRecordedFacts.overlap, .277);
}

TEST(SmoeRouting, TheOtherOneDiffersByItsOverlap) {
  const lab::RoutingFacts facts = facts_of(smoe_routing(SmoeRoutingKind::kOverlap));
  EXPECT_NEAR(facts.f_1, .40, kNear);
  EXPECT_NEAR(facts.mass, .333, kNear);
  EXPECT_NEAR(facts.overlap, .6, kNear);
}

// With another seed than the one it was fitted with.
TEST(SmoeRouting, ItsPredictionsAreRightAsOftenAsThePaperSays) {
  lab::SyntheticRouting settings = smoe_routing(SmoeRoutingKind::kFitted);
  settings.top_k = 8;
  settings.prompts = 4;
  settings.tokens = 64;
  settings.seed = 3;
  lab::SyntheticTrace trace(settings, 0);
  lab::RoutedSteps steps = lab::read_routed_steps(trace);
  lab::assume_errors(kPredictionError, settings.seed, steps);
  const TopScoreAccuracy found = top_score_accuracy(steps, .25);
  EXPECT_NEAR(found.precision(), kTopScorePrecision, kNear);
  EXPECT_NEAR(found.active_share(), .95, kNear);
}

// Two layers of three experts, top 1, one token a step; what is predicted is of the second layer.
lab::RoutedSteps steps_of(const std::vector<std::vector<float>>& logits,
                          const std::vector<std::vector<float>>& predicted, bool together) {
  lab::RoutedSteps steps{
      .layers = 2, .experts = 3, .top_k = 1, .logits = true, .predicted = true, .steps = {}};
  for (std::size_t i = 0; i < logits.size(); ++i) {
    if (i == 0 || !together) {
      steps.steps.emplace_back().layers.resize(2);
      for (lab::RoutedLayer& layer : steps.steps.back().layers) layer.begin = {0};
    }
    for (lab::RoutedLayer& layer : steps.steps.back().layers) {
      layer.logits.insert(layer.logits.end(), logits[i].begin(), logits[i].end());
      layer.begin.push_back(static_cast<std::uint32_t>(layer.begin.size()));
    }
    lab::RoutedLayer& second = steps.steps.back().layers[1];
    second.predicted.insert(second.predicted.end(), predicted[i].begin(), predicted[i].end());
  }
  return steps;
}

TEST(TopScoreAccuracy, CountsExpertsOfStepsAndLayers) {
  const float half = std::log(.5f);
  // Scores 1 and 1/2: top-score while 1 > (1 + α) / 2. The first prediction is right, the second wrong, the
  // third names a chosen expert that is not top-score, the fourth names none.
  const std::vector<std::vector<float>>
      logits = {{0, half, half}, {0, half, half}, {0, -.01f, -9}, {0, -9, -9}},
      predicted = {{0, half, half}, {half, 0, half}, {0, half, half}, {0, -.01f, -9}};
  const TopScoreAccuracy apart = top_score_accuracy(steps_of(logits, predicted, false), .25);
  EXPECT_EQ(apart.predicted, 3u);
  EXPECT_EQ(apart.top, 1u);
  EXPECT_EQ(apart.active, 2u);
  EXPECT_EQ(top_score_accuracy(steps_of(logits, predicted, false), 1.5).predicted, 0u);
  // In one step expert 0 is top-score for some token, and expert 1 for none.
  const TopScoreAccuracy together = top_score_accuracy(steps_of(logits, predicted, true), .25);
  EXPECT_EQ(together.predicted, 2u);
  EXPECT_EQ(together.top, 1u);
  EXPECT_EQ(together.active, 1u);
}

}  // namespace
}  // namespace sluice::reproduce
