// Generations are collected from traces of every kind.
#include "lab/replay/routed_steps.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lab/replay/synthetic_routing.h"

namespace sluice::lab {
namespace {

const std::string kRouting = SLUICE_SOURCE_DIR "/tests/data/routing/";

TEST(RoutedSteps, FirstTokensOfAPublishedSequenceAreItsPrompt) {
  const auto trace = trace::open_trace(kRouting + "dsv2lite.first48.mrt.zst");
  const RoutedSteps steps = read_routed_steps(*trace, {.prefill = 40});
  ASSERT_EQ(steps.steps.size(), 9u);
  EXPECT_EQ(steps.prompts, 1u);
  EXPECT_EQ(steps.prompt_tokens, 40u);
  EXPECT_EQ(steps.decode_tokens, 8u);
  EXPECT_FALSE(steps.logits);
  EXPECT_TRUE(steps.steps[0].prompt);
  EXPECT_EQ(steps.steps[0].tokens(), 40u);
  for (const RoutedLayer& layer : steps.steps[0].layers) {
    EXPECT_EQ(layer.tokens(), 40u);
    EXPECT_EQ(layer.choices.size(), 240u);
  }
  for (std::uint32_t s = 1; s < 9; ++s) {
    EXPECT_FALSE(steps.steps[s].prompt);
    EXPECT_EQ(steps.steps[s].sequences.front().context, 39 + s);
    EXPECT_EQ(steps.steps[s].layers[25].choices.size(), 6u);
  }
  const auto again = trace::open_trace(kRouting + "dsv2lite.first48.mrt.zst");
  const RoutedSteps fewer = read_routed_steps(*again, {.prefill = 40, .most_tokens = 43});
  EXPECT_EQ(fewer.steps.size(), 4u);
  EXPECT_EQ(fewer.decode_tokens, 3u);
}

TEST(RoutedSteps, TracesThatKnowPhasesAreTakenAsTheyAre) {
  const auto trace = trace::open_trace(kRouting + "qwen.route.csv.zst");
  const RoutedSteps steps = read_routed_steps(*trace);
  EXPECT_GE(steps.prompts, 1u);
  EXPECT_TRUE(steps.steps[0].prompt);
  EXPECT_FALSE(steps.steps[1].prompt);
  EXPECT_EQ(steps.steps[1].sequences.front().context, steps.steps[0].tokens());
  EXPECT_EQ(steps.steps[1].layers.size(), steps.layers);
}

TEST(SyntheticTrace, IsPromptsAndStepsWithTheirLogits) {
  const SyntheticRouting settings = {.layers = 2, .experts = 8, .top_k = 3, .prompts = 3, .tokens = 12};
  SyntheticTrace trace(settings, 5);
  SyntheticTokens tokens(settings);
  const RoutedSteps steps = read_routed_steps(trace);
  EXPECT_EQ(steps.prompts, 3u);
  EXPECT_EQ(steps.prompt_tokens, 15u);
  EXPECT_EQ(steps.decode_tokens, 21u);
  EXPECT_TRUE(steps.logits);
  ASSERT_EQ(steps.steps.size(), 3u * 8);
  for (std::size_t s = 0; s < steps.steps.size(); ++s) {
    const RoutedStep& step = steps.steps[s];
    EXPECT_EQ(step.prompt, s % 8 == 0);
    EXPECT_EQ(step.sequences.front().context, s % 8 == 0 ? 0 : 4 + s % 8);
    for (std::uint32_t t = 0; t < step.tokens(); ++t) {
      ASSERT_TRUE(tokens.next());
      for (std::uint32_t l = 0; l < 2; ++l) {
        const RoutedLayer& layer = step.layers[l];
        for (std::uint32_t e = 0; e < 8; ++e)
          EXPECT_EQ(layer.logits[t * 8 + e], static_cast<float>(tokens.logits(l)[e]));
        double mass = 0;
        for (std::uint32_t i = 0; i < 3; ++i) {
          EXPECT_EQ(layer.choices[layer.begin[t] + i].expert, tokens.chosen(l)[i]);
          mass += tokens.score(l, tokens.chosen(l)[i]);
        }
        EXPECT_GT(mass, 3.0 / 8);
        EXPECT_LE(mass, 1);
      }
    }
  }
  EXPECT_FALSE(tokens.next());
}

TEST(RoutingFacts, CountWhatIsThere) {
  // One layer, top 2 of 4: always expert 0, and another one that changes with every token.
  RoutingCounter counter(1, 4, 2);
  for (int sequence = 0; sequence < 2; ++sequence) {
    counter.begin_sequence();
    for (std::uint16_t t = 0; t < 4; ++t) {
      const std::uint16_t ids[] = {0, static_cast<std::uint16_t>(1 + t % 2)};
      counter.add(0, ids, .75);
    }
  }
  const RoutingFacts facts = counter.facts();
  EXPECT_DOUBLE_EQ(facts.f_1, 1);
  EXPECT_DOUBLE_EQ(facts.mass, .75);
  EXPECT_DOUBLE_EQ(facts.overlap, .5);
  // The same routing, token by token and as a trace of steps.
  SyntheticRouting settings{.layers = 2, .experts = 16, .top_k = 3, .prompts = 3, .tokens = 20};
  SyntheticTrace trace(settings, 7);
  const RoutingFacts read = facts_of(trace);
  SyntheticTokens tokens(settings);
  RoutingCounter direct(2, 16, 3);
  while (tokens.next()) {
    if (tokens.begins_prompt()) direct.begin_sequence();
    for (std::uint32_t l = 0; l < 2; ++l) {
      double mass = 0;
      for (const std::uint16_t e : tokens.chosen(l)) mass += tokens.score(l, e);
      direct.add(l, tokens.chosen(l), mass);
    }
  }
  const RoutingFacts expected = direct.facts();
  EXPECT_DOUBLE_EQ(read.f_1, expected.f_1);
  EXPECT_DOUBLE_EQ(read.overlap, expected.overlap);
  EXPECT_NEAR(read.mass, expected.mass, 1e-6);
}

}  // namespace
}  // namespace sluice::lab
