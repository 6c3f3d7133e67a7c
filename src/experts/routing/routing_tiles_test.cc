// The rule of docs/replay.md, "Played routing": by hand, and against the page written down plainly.
#include "experts/routing/routing_tiles.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>

#include "base/error.h"
#include "experts/routing/routing_script.h"

namespace sluice::experts::routing_tiles_test {
namespace {

using Ids = std::vector<std::uint16_t>;
using Choices = std::vector<Ids>;  // by recorded layer, best first

Ids ids_of(std::span<const std::uint16_t> experts) { return {experts.begin(), experts.end()}; }

TEST(RoutingTiles, RoutingOfTheSameShapeStaysAsItIs) {
  const RoutingShape shape{2, 8, 3};
  RoutingTiles tiles(shape, shape);
  EXPECT_EQ(tiles.text(), "");
  const Choices choices = {{7, 0, 3}, {5}};  // capacity dropped two of the second layer
  EXPECT_EQ(ids_of(tiles.experts(0, 4, choices)), (Ids{0, 3, 7}));
  EXPECT_EQ(ids_of(tiles.experts(1, 4, choices)), (Ids{5}));
}

TEST(RoutingTiles, LayersRepeatOrFollowAList) {
  const Choices choices = {{1, 0}, {3, 2}, {5, 4}};
  RoutingTiles longer({3, 8, 2}, {5, 8, 2});
  EXPECT_EQ(longer.text(), "layer l plays l mod 3");
  EXPECT_EQ(ids_of(longer.experts(3, 0, choices)), (Ids{0, 1}));
  EXPECT_EQ(ids_of(longer.experts(4, 0, choices)), (Ids{2, 3}));
  const std::vector<std::uint32_t> list = {2, 0};
  RoutingTiles listed({3, 8, 2}, {2, 8, 2}, list);
  EXPECT_EQ(listed.text(), "layers 2,0");
  EXPECT_EQ(ids_of(listed.experts(0, 0, choices)), (Ids{4, 5}));
  EXPECT_EQ(ids_of(listed.experts(1, 0, choices)), (Ids{0, 1}));
  const std::vector<std::uint32_t> beyond = {2, 3}, in_order = {0, 1};
  EXPECT_THROW(RoutingTiles({3, 8, 2}, {2, 8, 2}, beyond), Error);
  EXPECT_THROW(RoutingTiles({3, 8, 2}, {3, 8, 2}, list), Error);
  EXPECT_EQ(RoutingTiles({2, 8, 2}, {2, 8, 2}, in_order).text(), "");
}

TEST(RoutingTiles, AModelOfFewerExpertsFoldsThem) {
  RoutingTiles tiles({2, 8, 2}, {2, 4, 2});
  EXPECT_EQ(tiles.text(), "expert x is x mod 4");
  // 1 and 5 are one expert: the layer behind gives the other.
  const Choices choices = {{1, 5}, {6, 3}};
  EXPECT_EQ(ids_of(tiles.experts(0, 0, choices)), (Ids{1, 2}));
  EXPECT_EQ(ids_of(tiles.experts(1, 0, choices)), (Ids{2, 3}));
}

TEST(RoutingTiles, SequencesShareTheExpertsOfALargerModel) {
  RoutingTiles tiles({1, 4, 2}, {1, 11, 2});
  EXPECT_EQ(tiles.text(), "expert x of sequence s is x + 4 (s mod 2)");
  const Choices choices = {{3, 1}};
  EXPECT_EQ(ids_of(tiles.experts(0, 0, choices)), (Ids{1, 3}));
  EXPECT_EQ(ids_of(tiles.experts(0, 1, choices)), (Ids{5, 7}));
  EXPECT_EQ(ids_of(tiles.experts(0, 2, choices)), (Ids{1, 3}));
}

TEST(RoutingTiles, TheBestChoicesFillATokenAndOtherLayersWhatIsMissing) {
  const Choices choices = {{6, 2, 4}, {2, 7, 0}};
  RoutingTiles fewer({2, 8, 3}, {2, 8, 2});
  EXPECT_EQ(fewer.text(), "the best 2 of 3");
  EXPECT_EQ(ids_of(fewer.experts(0, 0, choices)), (Ids{2, 6}));
  RoutingTiles more({2, 8, 3}, {2, 8, 7});
  EXPECT_EQ(more.text(), "4 of 7 experts from the layers behind");
  // 6 2 4, then 7 0 of the other layer, then the lowest free ones: 1 3.
  EXPECT_EQ(ids_of(more.experts(0, 0, choices)), (Ids{0, 1, 2, 3, 4, 6, 7}));
}

// As the page says it, without an attempt to be fast.
std::set<std::uint16_t> plainly(const RoutingShape& recorded, const RoutingShape& model, std::uint32_t layer,
                                std::uint32_t sequence, const Choices& choices) {
  const std::uint32_t l = layer % recorded.layers;
  std::size_t wanted = model.top_k;
  if (choices[l].size() < recorded.top_k) wanted = std::min<std::size_t>(choices[l].size(), model.top_k);
  std::uint32_t offset = 0;
  if (model.experts >= 2 * recorded.experts)
    offset = recorded.experts * (sequence % (model.experts / recorded.experts));
  std::vector<std::uint16_t> order;
  for (std::uint32_t i = 0; i < recorded.layers; ++i)
    for (const std::uint16_t x : choices[(l + i) % recorded.layers])
      order.push_back(static_cast<std::uint16_t>((offset + x) % model.experts));
  for (std::uint32_t e = 0; e < model.experts; ++e) order.push_back(static_cast<std::uint16_t>(e));
  std::set<std::uint16_t> set;
  for (std::size_t i = 0; set.size() < wanted; ++i) set.insert(order[i]);
  return set;
}

TEST(RoutingTiles, AnyShapeIsFittedAsThePageSays) {
  constexpr std::uint64_t kSeed = 20;
  std::mt19937_64 random(kSeed);
  const auto below = [&](std::uint32_t most) { return static_cast<std::uint32_t>(random() % most); };
  const auto shape = [&] {
    const std::uint32_t experts = 1 + below(20);
    return RoutingShape{1 + below(5), experts, 1 + below(std::min(experts, 6u))};
  };
  for (int round = 0; round < 20000; ++round) {
    SCOPED_TRACE("seed " + std::to_string(kSeed) + ", round " + std::to_string(round));
    const RoutingShape recorded = shape(), model = shape();
    RoutingTiles tiles(recorded, model);
    Choices choices;
    for (std::uint32_t l = 0; l < recorded.layers; ++l) {
      Ids all(recorded.experts);
      for (std::uint32_t e = 0; e < recorded.experts; ++e) all[e] = static_cast<std::uint16_t>(e);
      std::ranges::shuffle(all, random);
      all.resize(below(4) == 0 ? below(recorded.top_k + 1) : recorded.top_k);
      choices.push_back(all);
    }
    const std::uint32_t layer = below(model.layers), sequence = below(9);
    const std::span<const std::uint16_t> experts = tiles.experts(layer, sequence, choices);
    const std::set<std::uint16_t> expected = plainly(recorded, model, layer, sequence, choices);
    ASSERT_TRUE(std::ranges::equal(experts, expected));
    ASSERT_TRUE(recorded != model || tiles.text().empty());
  }
}

TEST(RoutingScript, KeepsTheExpertsOfEverySequenceTokenAndLayer) {
  RoutingScript script(2, 3, "x.mrt");
  script.begin_sequence();
  script.begin_sequence();
  script.add_token(1);
  script.set(1, 0, Ids{4, 9});
  script.add_token(0);
  script.set(0, 1, Ids{1, 2, 3});
  script.add_token(1);
  script.set(1, 1, Ids{7});
  EXPECT_EQ(script.sequences(), 2u);
  EXPECT_EQ(script.tokens(0), 1u);
  EXPECT_EQ(script.tokens(1), 2u);
  EXPECT_EQ(ids_of(script.experts(0, 0, 0)), Ids{});
  EXPECT_EQ(ids_of(script.experts(0, 0, 1)), (Ids{1, 2, 3}));
  EXPECT_EQ(ids_of(script.experts(1, 0, 0)), (Ids{4, 9}));
  EXPECT_EQ(ids_of(script.experts(1, 1, 1)), (Ids{7}));
  EXPECT_GE(script.bytes(), 3u * 2 * 3 * 2);
}

}  // namespace
}  // namespace sluice::experts::routing_tiles_test
