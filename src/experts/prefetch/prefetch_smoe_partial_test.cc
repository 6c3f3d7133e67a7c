// What SMoE's prefetch names, by hand: top scores alone, the highest first, and prompts by whole layers.
#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "experts/prefetch/prefetch.h"
#include "experts/prefetch/testing.h"

namespace sluice::experts::prefetch_smoe_partial_test {
namespace {

struct Case {
  std::uint32_t experts, tokens, top_k;
  std::vector<float> scores = {};  // (tokens, experts) of layer 1; empty: nothing was predicted
  double alpha = .25;
  std::uint32_t most = kAnyRequests, layers = 2;
  HeldParts held = {};
  std::unique_ptr<Prefetch> (*make)(const PrefetchConfig&) = make_smoe_partial_prefetch;

  std::vector<int> proposed() const {
    ScoresView next;
    next.layer = 1;
    next.experts = experts;
    next.tokens = tokens;
    next.scores = scores;
    Routing routing;
    for (std::uint32_t t = 0; t <= tokens; ++t) routing.begin.push_back(t * top_k);
    LayerState state;
    state.layers = layers;
    state.experts = experts;
    state.routing = &routing;
    state.residency = &held;
    state.next = scores.empty() ? nullptr : &next;
    state.top_k = top_k;
    state.most = most;
    state.tier = Tier::kDevice;
    std::vector<PartRequest> out;
    make({.alpha = alpha})->propose(state, out);
    std::vector<int> ids;
    for (const PartRequest& one : out) {
      EXPECT_EQ(one.id.layer, 1);
      EXPECT_EQ(one.tier, Tier::kDevice);
      EXPECT_EQ(one.parts, Parts(Part::kFull));
      ids.push_back(one.id.index);
    }
    return ids;
  }
};

using Ids = std::vector<int>;

TEST(SmoePartialPrefetch, NamesTopScoresAloneAndTheHighestFirst) {
  Case it{6, 1, 3, {.1f, .12f, .3f, .08f, .36f, .04f}};  // the best that is not chosen has .1
  EXPECT_EQ(it.proposed(), (Ids{4, 2}));                 // .12 is below 1.25 times .1
  it.alpha = .1;
  EXPECT_EQ(it.proposed(), (Ids{4, 2, 1}));
  it.most = 2;
  EXPECT_EQ(it.proposed(), (Ids{4, 2}));
  it.held.set({1, 4}, Part::kFull);
  it.held.set({0, 2}, Part::kFull);  // an expert of another layer
  EXPECT_EQ(it.proposed(), (Ids{2, 1}));
}

TEST(SmoePartialPrefetch, MayNameAllThatArePredicted) {
  Case it{6, 1, 3, {.1f, .12f, .3f, .08f, .36f, .04f}};
  it.make = make_smoe_partial_all_prefetch;
  for (const double alpha : {0.0, .25, 9.0}) {
    it.alpha = alpha;
    EXPECT_EQ(it.proposed(), (Ids{4, 2, 1})) << alpha;
  }
  it.held.set({1, 2}, Part::kFull);
  EXPECT_EQ(it.proposed(), (Ids{4, 1}));
}

TEST(SmoePartialPrefetch, TakesTheHighestScoreOfTheTokensThatWantAnExpert) {
  const Case it{4, 2, 1, {.5f, .3f, .1f, .1f, .2f, .1f, .1f, .6f}};
  EXPECT_EQ(it.proposed(), (Ids{3, 0}));
}

TEST(SmoePartialPrefetch, WherePromptsCanUseAllItNamesTheWholeLayer) {
  Case it{4, 2, 2};
  it.held.set({1, 1}, Part::kFull);
  EXPECT_EQ(it.proposed(), (Ids{0, 2, 3}));
  it.most = 2;
  EXPECT_EQ(it.proposed(), (Ids{0, 2}));
  it.tokens = 1;
  EXPECT_EQ(it.proposed(), Ids{});
}

TEST(SmoePartialPrefetch, SaysNothingBehindTheLastLayer) {
  Case it{4, 2, 2};
  it.layers = 1;
  EXPECT_EQ(it.proposed(), Ids{});
}

}  // namespace
}  // namespace sluice::experts::prefetch_smoe_partial_test
