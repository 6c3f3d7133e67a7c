// What LayerDecider decides about one event of the host, by hand.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "experts/cache/cache_policies.h"
#include "experts/decider_setting_testing.h"
#include "experts/layer_decider.h"
#include "experts/registry.h"

namespace sluice::experts {
namespace {

// A cache that keeps nothing and remembers what it was told.
class Listener final : public Cache {
 public:
  explicit Listener(std::vector<float>& scores) : scores_(scores) {}
  void on_step(const StepReport& report) override {
    scores_.assign(report.scores.begin(), report.scores.end());
  }
  Parts wanted(ExpertId) const override { return {}; }
  void victims(Bytes, const PinnedView&, std::vector<Eviction>&) override {}
  void on_insert(ExpertId, Parts, Bytes) override {}
  void on_evict(ExpertId, Parts) override {}
  std::string name() const override { return "listener"; }

 private:
  std::vector<float>& scores_;
};

LayerPolicies listening(std::vector<float>& scores, const ExpertSizes& sizes) {
  LayerPolicies policies;
  policies.router = make_exact_router({.top_k = 1}, {});
  policies.residencies.push_back(std::make_unique<Residency>(std::make_unique<Listener>(scores), sizes, 0));
  return policies;
}

TEST(LayerDecider, CachesAreToldTheMeanScoresOfTheTokens) {
  const LayerSizes sizes(Family::kRaw);
  std::vector<float> told;
  LayerDecider decider(listening(told, sizes), {1, 1});
  const std::vector<float> scores = {.5f, .25f, .25f, .125f, .75f, .125f};
  const SequenceSpan span{.tokens = 2, .kind = StepKind::kPrompt};
  decider.begin_step({&span, 1});
  decider.route(
      {.layer = 0, .experts = 3, .tokens = 2, .logits = scores, .scores = scores, .spans = {&span, 1}});
  EXPECT_TRUE(told.empty());  // no residency has been asked yet
  decider.decide();
  EXPECT_THAT(told, testing::ElementsAre(.3125f, .5f, .1875f));
}

// All experts of the layer are fetched for an event without a routing, too, and those alone are computed that
// it names.
TEST(LayerDecider, WholeLayersAreFetchedForAnEventWithoutARouting) {
  const LayerSizes sizes(Family::kRaw);
  LayerPolicies policies;
  policies.residencies.push_back(std::make_unique<Residency>(make_cache("none", {}), sizes, 0));
  policies.whole_layers = true;
  LayerDecider decider(std::move(policies), {2, 1});
  const ExpertId ids[] = {{1, 0}, {1, 2}};
  const std::uint32_t tokens[] = {3, 1};
  const SequenceSpan span{.tokens = 4, .kind = StepKind::kPrompt};
  for (int again = 0; again < 2; ++again) {
    decider.begin_step({&span, 1});
    decider.follow(1, {ids, tokens}, {.experts = 4});
    const LayerDecision& decision = decider.decide();
    EXPECT_THAT(decision.experts, testing::ElementsAreArray(ids));
    EXPECT_EQ(decision.outcome->misses.size(), 2u);
    ASSERT_EQ(decision.fetch->misses.size(), 4u);
    for (std::uint16_t e = 0; e < 4; ++e) EXPECT_EQ(decision.fetch->misses[e].id, (ExpertId{1, e}));
    EXPECT_THAT(decision.fetch_demand.tokens, testing::ElementsAre(3u, 0u, 1u, 0u));
    decider.end_step();
  }
}

TEST(LayerDecider, OrdersWhatIsMissingByItsSchedulerAndCosts) {
  const LayerSizes sizes(Family::kSplit);
  LayerPolicies policies;
  policies.residencies.push_back(std::make_unique<Residency>(make_cache("none", {}), sizes, 0));
  policies.scheduler = find_scheduler("p_sorted").make();
  policies.costs.run = {.per_token = 1};
  LayerDecider decider(std::move(policies), {1, 1});
  const MissingExpert missing[] = {{.id = {0, 1}, .tensors = 1, .tokens = 1},
                                   {.id = {0, 2}, .held = Part::kExp, .tensors = 1, .tokens = 5}};
  const ReadOrder& order = decider.order(missing);
  ASSERT_EQ(order.tasks.size(), 2u);
  EXPECT_EQ(order.tasks[1].run, 5);
  EXPECT_EQ(order.tasks[1].state, State::kE);
  EXPECT_EQ(order.tasks[order.schedule.order.front()].expert, (ExpertId{0, 2}));
}

TEST(LayerDeciderDeath, CallsOutOfOrderAreFound) {
  const LayerSizes sizes(Family::kRaw);
  std::vector<float> told;
  LayerDecider decider(listening(told, sizes), {1, 1});
  EXPECT_DEATH(decider.decide(), "not been routed");
  const std::vector<float> scores = {.5f, .5f};
  const SequenceSpan span{.tokens = 1};
  const ScoresView view{
      .layer = 0, .experts = 2, .tokens = 1, .logits = scores, .scores = scores, .spans = {&span, 1}};
  EXPECT_DEATH(decider.route(view), "another kind");
  decider.begin_step(view.spans);
  decider.route(view);
  decider.decide();
  EXPECT_DEATH(decider.decide(), "not been routed");
}

}  // namespace
}  // namespace sluice::experts
