#include "lab/replay/batches.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <random>
#include <vector>

namespace sluice::lab {
namespace {

// One token; its only choice says which step of which sequence it is.
RoutedStep step_of(std::uint64_t sequence, std::uint16_t number, bool prompt = false) {
  RoutedStep step{.prompt = prompt, .sequences = {{1, number, sequence}}, .layers = {}};
  RoutedLayer layer{.choices = {{.expert = static_cast<std::uint16_t>(sequence * 10 + number)}},
                    .begin = {0, 1},
                    .logits = {}};
  step.layers = {layer, layer};
  return step;
}

std::vector<std::uint16_t> ids_of(const RoutedStep& step) {
  std::vector<std::uint16_t> ids;
  for (const experts::Choice& one : step.layers[1].choices) ids.push_back(one.expert);
  return ids;
}

TEST(Batches, AnEndedSequenceIsReplacedByTheNext) {
  RoutedSteps steps{.layers = 2, .experts = 99, .top_k = 1, .steps = {}};
  for (const auto& [sequence, length] : std::vector<std::pair<int, int>>{{0, 3}, {1, 1}, {2, 1}, {3, 2}})
    for (int i = 0; i < length; ++i)
      steps.steps.push_back(step_of(static_cast<std::uint64_t>(sequence), static_cast<std::uint16_t>(i)));
  const RoutedSteps two = batched(steps, 2);
  std::vector<std::vector<std::uint16_t>> found;
  for (const RoutedStep& step : two.steps) found.push_back(ids_of(step));
  // 3 joins beside 0, and then no other is left when 0 ends.
  EXPECT_THAT(found, ::testing::ElementsAre(::testing::ElementsAre(0, 10), ::testing::ElementsAre(1, 20),
                                            ::testing::ElementsAre(2, 30)));
  EXPECT_EQ(two.decode_tokens, 6u);
  EXPECT_EQ(two.steps[0].layers[0].begin, (std::vector<std::uint32_t>{0, 1, 2}));
  EXPECT_EQ(batched(steps, 1).steps.size(), 7u);
  EXPECT_TRUE(batched(steps, 5).steps.empty());
  EXPECT_EQ(largest_batch(steps), 4u);
}

TEST(Batches, APromptComesWhenItsSequenceJoins) {
  RoutedSteps steps{.layers = 2, .experts = 99, .top_k = 1, .steps = {}};
  for (std::uint64_t sequence = 0; sequence < 3; ++sequence) {
    steps.steps.push_back(step_of(sequence, 0, true));
    if (sequence != 1) steps.steps.push_back(step_of(sequence, 1));
  }
  const RoutedSteps two = batched(steps, 2);
  std::vector<bool> prompt;
  for (const RoutedStep& step : two.steps) prompt.push_back(step.prompt);
  // 1 has nothing to decode.
  EXPECT_THAT(prompt, ::testing::ElementsAre(true, true, true, false));
  EXPECT_THAT(ids_of(two.steps[3]), ::testing::ElementsAre(1, 21));
  EXPECT_EQ(two.prompts, 3u);
  EXPECT_EQ(two.prompt_tokens, 3u);
  EXPECT_EQ(largest_batch(steps), 2u);
}

// Whatever the lengths: every decode step has `batch` sequences, and each goes on where it was.
TEST(Batches, EveryStepIsFullAndInOrder) {
  constexpr std::uint64_t kSeed = 3;
  SCOPED_TRACE("seed " + std::to_string(kSeed));
  std::mt19937_64 random(kSeed);
  for (int instance = 0; instance < 300; ++instance) {
    RoutedSteps steps{.layers = 2, .experts = 9999, .top_k = 1, .steps = {}};
    const std::uint64_t count = random() % 9;
    for (std::uint64_t sequence = 0; sequence < count; ++sequence)
      for (std::uint64_t i = 0, n = 1 + random() % 9; i < n; ++i)
        steps.steps.push_back(step_of(sequence, static_cast<std::uint16_t>(i)));
    const auto batch = static_cast<std::uint32_t>(1 + random() % 4);
    std::map<std::uint64_t, std::uint32_t> seen;
    const RoutedSteps out = batched(steps, batch);
    EXPECT_EQ(out.steps.empty(), count < batch);
    EXPECT_EQ(largest_batch(steps), count);
    for (const RoutedStep& step : out.steps) {
      EXPECT_EQ(step.sequences.size(), batch);
      for (const RoutedStretch& one : step.sequences) EXPECT_EQ(one.context, seen[one.sequence]++);
    }
  }
}

}  // namespace
}  // namespace sluice::lab
