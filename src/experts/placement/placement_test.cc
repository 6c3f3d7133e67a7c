// Every placement of the registry: what all must keep to, and each one's rule written plainly.
#include "experts/placement/placement.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>
#include <string>

#include "base/error.h"
#include "experts/registry.h"

namespace sluice::experts {
namespace {

struct Layer {
  std::vector<ExpertId> ids;
  std::vector<std::uint32_t> tokens;
  std::vector<double> host, device, transfer;
  std::vector<std::uint8_t> there;
  std::optional<std::uint32_t> slots;

  std::size_t size() const { return ids.size(); }
  Demand demand() const { return {ids, tokens}; }
  PlacementCosts costs() const {
    return {.t_host = host, .t_device = device, .transfer = transfer, .on_device = there, .slots = slots};
  }
  double on_device(std::size_t i) const { return std::max(device[i], transfer[i]); }
  double makespan(std::uint32_t set) const {
    double a = 0, b = 0;
    for (std::size_t i = 0; i < size(); ++i) (set >> i & 1) != 0 ? a += on_device(i) : b += host[i];
    return std::max(a, b);
  }
  std::uint32_t loads(std::uint32_t set) const {
    std::uint32_t count = 0;
    for (std::size_t i = 0; i < size(); ++i) count += (set >> i & 1) != 0 && there[i] == 0 ? 1 : 0;
    return count;
  }
  double least() const {
    double best = makespan(0);
    for (std::uint32_t set = 1; set < 1u << size(); ++set)
      if (!slots || loads(set) <= *slots) best = std::min(best, makespan(set));
    return best;
  }
};

Layer random_layer(std::mt19937_64& random) {
  Layer layer;
  const std::size_t n = random() % 9;
  const double whole = 1 + static_cast<double>(random() % 8), each = static_cast<double>(random() % 4);
  std::uint16_t index = 0;
  for (std::size_t i = 0; i < n; ++i) {
    index = static_cast<std::uint16_t>(index + 1 + random() % 3);
    layer.ids.push_back({3, index});
    layer.tokens.push_back(static_cast<std::uint32_t>(1 + random() % 9));
    layer.host.push_back(1 + each * layer.tokens.back());
    layer.device.push_back(static_cast<double>(random() % 3));
    layer.there.push_back(random() % 2 == 0 ? 1 : 0);
    // One that is there may be under way, and a part of its copy is left.
    layer.transfer.push_back(layer.there.back() == 0 ? whole : random() % 4 == 0 ? whole / 2 : 0);
  }
  if (random() % 2 == 0) layer.slots = static_cast<std::uint32_t>(random() % (n + 1));
  return layer;
}

std::uint32_t set_of(const Assignment& assignment) {
  std::uint32_t set = 0;
  for (std::size_t i = 0; i < assignment.unit.size(); ++i)
    set |= assignment.unit[i] == Unit::kDevice ? 1u << i : 0;
  return set;
}

// The rules of the placements that look at one expert at a time.
bool one_goes(std::string_view name, const Layer& layer, std::size_t i) {
  if (name == "cpu") return false;
  if (name == "device" || layer.there[i] != 0) return true;
  if (name == "threshold") return layer.host[i] >= layer.transfer[i];
  return name == "fiddler" && layer.on_device(i) <= layer.host[i];
}

TEST(Placement, EveryOneKeepsToTheRulesOnRandomLayers) {
  constexpr std::uint64_t kSeed = 97;
  SCOPED_TRACE("seed " + std::to_string(kSeed));
  std::mt19937_64 random(kSeed);
  std::map<std::string_view, std::unique_ptr<Placement>> all;
  for (const PlacementPolicy& policy : placement_policies()) all[policy.name] = policy.make();
  ASSERT_EQ(all.size(), 13u);
  const std::set<std::string_view> single = {"cpu", "device", "layer-split", "threshold", "fiddler"};
  std::map<std::string_view, double> excess;  // over the least makespan
  std::size_t measured = 0;
  for (int instance = 0; instance < 3000 && !testing::Test::HasFailure(); ++instance) {
    const Layer layer = random_layer(random);
    const double least = layer.least();
    measured += least > 0 ? 1 : 0;
    double sum_of_least = 0;
    for (std::size_t i = 0; i < layer.size(); ++i)
      sum_of_least += std::min(layer.on_device(i), layer.host[i]);
    for (const auto& [name, placement] : all) {
      SCOPED_TRACE(std::string(name) + ", instance " + std::to_string(instance));
      Assignment out;
      out.unit.assign(3, Unit::kDevice);  // is replaced
      placement->assign(layer.demand(), layer.costs(), out);
      ASSERT_EQ(out.unit.size(), layer.size());
      const std::uint32_t set = set_of(out);
      if (layer.slots) {
        EXPECT_LE(layer.loads(set), *layer.slots);
      }
      EXPECT_GE(layer.makespan(set), least * (1 - 1e-12));
      if (least > 0) excess[name] += layer.makespan(set) / least;
      if (name == "optimal") {
        EXPECT_NEAR(layer.makespan(set), least, 1e-9 * least);
      }
      if (!layer.slots && (name == "greedy" || name == "beam")) {
        EXPECT_LE(layer.makespan(set), sum_of_least + 1e-9);
      }
      if (single.contains(name)) {
        std::uint32_t expected = 0, loads = 0;
        for (std::size_t i = 0; i < layer.size(); ++i) {
          if (!one_goes(name, layer, i)) continue;
          if (layer.there[i] == 0 && layer.slots && loads == *layer.slots) continue;
          loads += layer.there[i] == 0 ? 1 : 0;
          expected |= 1u << i;
        }
        EXPECT_EQ(set, expected);
      }
      placement->assign(layer.demand(), {.t_host = layer.host}, out);
      EXPECT_EQ(set_of(out), 0u);  // there is no device
      EXPECT_EQ(out.unit.size(), layer.size());
    }
  }
  // The better the method, the nearer it is to the least makespan.
  const auto mean = [&](std::string_view name) { return excess[name] / static_cast<double>(measured); };
  EXPECT_LT(mean("ratio-prefix"), mean("greedy"));
  EXPECT_LT(mean("greedy"), mean("cpu"));
  EXPECT_LT(mean("greedy"), mean("device"));
  EXPECT_EQ(all["optimal"]->fallbacks(), 0u);
}

// Many experts whose times differ by little have more partial splits than anyone would walk.
// The link's copies against the host's work, what is on the device left out.
double balance_of(const Layer& layer, std::uint32_t set) {
  double link = 0, host = 0;
  for (std::size_t i = 0; i < layer.size(); ++i) {
    if (layer.there[i] != 0) continue;
    (set >> i & 1) != 0 ? link += layer.transfer[i] : host += layer.host[i];
  }
  return std::max(link, host);
}

// The first ones by id of the experts that the device lacks: always the share that was best for the first
// layer.
TEST(Placement, AFixedShareDoesNotFollowTheWork) {
  Layer layer;
  for (std::uint16_t i = 0; i < 8; ++i) {
    layer.ids.push_back({0, i});
    layer.tokens.push_back(1);
    layer.host.push_back(3);
    layer.device.push_back(1);
    layer.there.push_back(i == 5 ? 1 : 0);
    layer.transfer.push_back(i == 5 ? 0 : 4);
  }
  const auto placement = find_placement("fixed-share").make();
  Assignment out;
  const auto assigned = [&] {
    placement->assign(layer.demand(), layer.costs(), out);
    return set_of(out);
  };
  // 6 of 16, which is nearest to three of the seven: 12 for their copies, and 12 for the four of the host.
  EXPECT_EQ(assigned(), 0b00100111u);
  for (double& host : layer.host) host = 300;  // other work, the same share
  EXPECT_EQ(assigned(), 0b00100111u);
  layer.slots = 1;
  EXPECT_EQ(assigned(), 0b00100001u);
  layer.slots = {};
  std::ranges::fill(layer.there, std::uint8_t{1});
  std::ranges::fill(layer.transfer, 0.0);
  EXPECT_EQ(assigned(), 0b11111111u);  // what is there is computed there
  // Prompts have a share of their own: the host takes so long that all are copied.
  std::ranges::fill(layer.there, std::uint8_t{0});
  std::ranges::fill(layer.transfer, 4.0);
  PlacementCosts prompt = layer.costs();
  prompt.phase = StepKind::kPrompt;
  placement->assign(layer.demand(), prompt, out);
  EXPECT_EQ(set_of(out), 0b11111111u);
}

TEST(Placement, SmoesBalanceIsTheBestThereIsBetweenLinkAndHost) {
  constexpr std::uint64_t kSeed = 98;
  SCOPED_TRACE("seed " + std::to_string(kSeed));
  std::mt19937_64 random(kSeed);
  const auto balance = find_placement("smoe-balance").make(),
             literal = find_placement("smoe-balance-literal").make();
  int worse = 0;
  for (int instance = 0; instance < 2000; ++instance) {
    Layer layer = random_layer(random);
    layer.slots.reset();
    std::uint32_t there = 0;
    for (std::size_t i = 0; i < layer.size(); ++i) there |= layer.there[i] != 0 ? 1u << i : 0;
    double least = balance_of(layer, 0);
    for (std::uint32_t set = 1; set < 1u << layer.size(); ++set)
      least = std::min(least, balance_of(layer, set));
    Assignment out;
    balance->assign(layer.demand(), layer.costs(), out);
    EXPECT_EQ(set_of(out) & there, there) << instance;
    EXPECT_NEAR(balance_of(layer, set_of(out)), least, 1e-9) << instance;
    literal->assign(layer.demand(), layer.costs(), out);
    EXPECT_EQ(set_of(out) & there, there) << instance;
    if (layer.loads(there) < std::ranges::count(layer.there, 0)) {
      EXPECT_GT(layer.loads(set_of(out)), 0u) << "the first expert is always copied";
    }
    worse += balance_of(layer, set_of(out)) > least + 1e-9 ? 1 : 0;
  }
  EXPECT_GT(worse, 200);
}

TEST(Placement, TheOptimumGivesUpAndCounts) {
  std::mt19937_64 random(5);
  Layer layer;
  for (std::uint16_t i = 0; i < 128; ++i) {
    layer.ids.push_back({0, i});
    layer.tokens.push_back(1);
    layer.host.push_back(1e6 + static_cast<double>(random() % 100000));
    layer.device.push_back(1e6 + static_cast<double>(random() % 100000));
    layer.transfer.push_back(0);
    layer.there.push_back(i % 2);
  }
  layer.slots = 32;
  const auto optimal = find_placement("optimal").make(), prefix = find_placement("ratio-prefix").make();
  Assignment a, b;
  optimal->assign(layer.demand(), layer.costs(), a);
  prefix->assign(layer.demand(), layer.costs(), b);
  EXPECT_EQ(optimal->fallbacks(), 1u);
  EXPECT_EQ(a.unit, b.unit);
}

TEST(Placement, NamesAreTheRegistrys) {
  std::set<std::string_view> names;
  for (const PlacementPolicy& policy : placement_policies()) {
    EXPECT_TRUE(names.insert(policy.name).second);
    EXPECT_EQ(policy.make()->name(), policy.name);
    EXPECT_EQ(&find_placement(policy.name), &policy);
    EXPECT_FALSE(policy.source.empty());
    EXPECT_EQ(policy.needs_device, policy.name != "cpu");
  }
  EXPECT_EQ(find_placement("host").name, "cpu");
}

}  // namespace
}  // namespace sluice::experts
