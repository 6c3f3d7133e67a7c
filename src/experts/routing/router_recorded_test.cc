// Which recorded token a token plays, and with which weights.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "base/error.h"
#include "experts/core/residency_view.h"
#include "experts/registry.h"
#include "experts/routing/router_config.h"
#include "experts/routing/routing_script.h"

namespace sluice::experts::router_recorded_test {
namespace {

using testing::ElementsAre;
using Ids = std::vector<std::uint16_t>;

constexpr std::uint32_t kExperts = 8;

class NothingResident final : public ResidencyView {
 public:
  Parts parts(ExpertId) const override { return {}; }
};

// Recorded sequences of 3, 0 and 2 tokens in one layer; each token chose one expert, of its own.
RoutingScript small_script() {
  RoutingScript script(1, 1, "x.mrt");
  for (const Ids& experts : {Ids{0, 1, 2}, Ids{}, Ids{5, 6}}) {
    script.begin_sequence();
    for (const std::uint16_t expert : experts) {
      script.add_token(script.sequences() - 1);
      script.set(script.sequences() - 1, 0, Ids{expert});
    }
  }
  return script;
}

struct Player {
  RoutingScript script = small_script();
  std::unique_ptr<Router> router = find_router("recorded").make({.select = {.top_k = 1}, .script = &script});

  Ids play(const std::vector<SequenceSpan>& spans) {
    std::uint32_t tokens = 0;
    for (const SequenceSpan& span : spans) tokens += span.tokens;
    const std::vector<float> scores(std::size_t{tokens} * kExperts, 1.f / kExperts);
    Routing routing;
    router->route({.layer = 0,
                   .experts = kExperts,
                   .tokens = tokens,
                   .logits = scores,
                   .scores = scores,
                   .spans = spans},
                  NothingResident(), routing);
    EXPECT_EQ(routing.begin.size(), tokens + std::size_t{1});
    Ids ids;
    for (const Choice& choice : routing.choices) ids.push_back(choice.expert);
    return ids;
  }
  Ids play(SequenceId sequence, std::uint64_t position, std::uint32_t tokens,
           StepKind kind = StepKind::kDecode) {
    return play({{.sequence = sequence, .tokens = tokens, .position = position, .kind = kind}});
  }
};

TEST(RecordedRouter, AnEndedSequenceIsReplacedByTheNextAndTheFirstFollowsTheLast) {
  Player player;
  EXPECT_THAT(player.play(7, 0, 2, StepKind::kPrompt), ElementsAre(0, 1));
  EXPECT_THAT(player.play(7, 2, 1), ElementsAre(2));
  EXPECT_THAT(player.play(7, 3, 1), ElementsAre(5));  // the sequence without tokens is passed over
  EXPECT_THAT(player.play(7, 4, 3), ElementsAre(6, 0, 1));
}

TEST(RecordedRouter, SequencesOfABatchTakeTheRecordedOnesInTheirOrder) {
  Player player;
  EXPECT_THAT(player.play(3, 0, 2, StepKind::kPrompt), ElementsAre(0, 1));
  EXPECT_THAT(player.play(9, 0, 1, StepKind::kPrompt), ElementsAre(5));
  // One step of both, of which the second ends and takes the next, which is the first again.
  const std::vector<SequenceSpan> both = {{.sequence = 3, .tokens = 1, .position = 2},
                                          {.sequence = 9, .first_token = 1, .tokens = 2, .position = 1}};
  EXPECT_THAT(player.play(both), ElementsAre(2, 6, 0));
}

TEST(RecordedRouter, AStepThatFailedIsPlayedAgain) {
  Player player;
  EXPECT_THAT(player.play(0, 0, 4, StepKind::kPrompt), ElementsAre(0, 1, 2, 5));
  EXPECT_THAT(player.play(0, 4, 2), ElementsAre(6, 0));
  EXPECT_THAT(player.play(0, 4, 2), ElementsAre(6, 0));
  EXPECT_THAT(player.play(0, 1, 3), ElementsAre(1, 2, 5));  // and so is one before
  EXPECT_THAT(player.play(0, 6, 1), ElementsAre(1));
}

TEST(RecordedRouter, AnotherSequenceOfTheSameNumberBeginsWithTheNext) {
  Player player;
  EXPECT_THAT(player.play(0, 0, 1), ElementsAre(0));
  player.router->end_sequence(0);
  EXPECT_THAT(player.play(0, 0, 1), ElementsAre(5));
}

TEST(RecordedRouter, WeightsAreTheModelsOverThePlayedSet) {
  RoutingScript script(2, 2, "x.mrt");
  script.begin_sequence();
  script.add_token(0);
  script.set(0, 1, Ids{1, 3});
  const auto router =
      find_router("recorded")
          .make({.select = {.top_k = 2}, .combine = {.renormalise = true, .scale = 2}, .script = &script});
  const std::vector<float> scores = {.5f, .125f, .25f, .375f};
  const SequenceSpan span{.tokens = 1};
  const auto route = [&](std::uint32_t layer) {
    Routing routing;
    router->route(
        {.layer = layer, .experts = 4, .tokens = 1, .logits = scores, .scores = scores, .spans = {&span, 1}},
        NothingResident(), routing);
    return routing;
  };
  const Routing played = route(1);
  ASSERT_EQ(played.choices.size(), 2u);
  EXPECT_EQ(played.choices[0].expert, 1);
  EXPECT_EQ(played.choices[0].weight, .5f);
  EXPECT_EQ(played.choices[1].expert, 3);
  EXPECT_EQ(played.choices[1].weight, 1.5f);
  EXPECT_THAT(played.exact, ElementsAre(0, 3));  // the model's own
  EXPECT_TRUE(route(0).choices.empty());         // as recorded: capacity may leave none
}

TEST(RecordedRouter, RefusesToPlayNothingAndModelsOfLimitedCapacity) {
  const RouterPolicy& policy = find_router("recorded");
  EXPECT_TRUE(policy.lossy);
  try {
    policy.make({.select = {.top_k = 1}});
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kUsage);
  }
  const RoutingScript script = small_script();
  EXPECT_THROW(policy.make({.select = {.top_k = 1, .capacity = 3}, .script = &script}), Error);
}

}  // namespace
}  // namespace sluice::experts::router_recorded_test
