// Logits beside a device are those of the host alone, byte for byte: for every golden model with every
// placement, from no slot to one for each expert, batches of 1, 4 and 16 ragged sequences, 1 and 2 threads,
// both kinds of arithmetic. Runs as many combinations as it takes that each value of each meets each value of
// every other; with SLUICE_WHOLE_PRODUCT set, all of them.
#include <gtest/gtest.h>

#include <array>
#include <cstdlib>
#include <iostream>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "engine/device_unit_fixture.h"
#include "experts/registry.h"

namespace sluice::engine::device_product_test {
namespace {

constexpr std::uint64_t kProductSeed = 20261127;

// By its index: a value of each dimension.
enum Dimension : std::size_t { kModel, kPlacement, kSlots, kBatch, kThreads, kMath, kDimensions };
using Combination = std::array<std::size_t, kDimensions>;

// Slots of each layer, as a share of its experts.
constexpr double kSlotShares[] = {0, .1, .5, 1};
constexpr std::size_t kBatches[] = {1, 4, 16};

Combination sizes_of_dimensions() {
  return {sluice::testing::golden_model_names().size(),
          experts::placement_policies().size(),
          std::size(kSlotShares),
          std::size(kBatches),
          2,
          2};
}

// Two values of different dimensions.
using Pair = std::pair<std::pair<std::size_t, std::size_t>, std::pair<std::size_t, std::size_t>>;

std::vector<Pair> pairs_of(const Combination& one) {
  std::vector<Pair> pairs;
  for (std::size_t a = 0; a < kDimensions; ++a)
    for (std::size_t b = a + 1; b < kDimensions; ++b) pairs.push_back({{a, one[a]}, {b, one[b]}});
  return pairs;
}

std::size_t count_of_pairs(const Combination& sizes) {
  std::size_t count = 0;
  for (std::size_t a = 0; a < kDimensions; ++a)
    for (std::size_t b = a + 1; b < kDimensions; ++b) count += sizes[a] * sizes[b];
  return count;
}

// Takes of random combinations those that bring the most new pairs; each has a pair that is lacking.
std::vector<Combination> covering_combinations() {
  const Combination sizes = sizes_of_dimensions();
  std::set<Pair> lacking;
  for (std::size_t a = 0; a < kDimensions; ++a)
    for (std::size_t b = a + 1; b < kDimensions; ++b)
      for (std::size_t x = 0; x < sizes[a]; ++x)
        for (std::size_t y = 0; y < sizes[b]; ++y) lacking.insert({{a, x}, {b, y}});
  std::mt19937_64 random(kProductSeed);
  std::vector<Combination> all;
  while (!lacking.empty()) {
    Combination best = {};
    int most = 0;
    for (int i = 0; i < 40; ++i) {
      Combination one;
      for (std::size_t d = 0; d < kDimensions; ++d) one[d] = random() % sizes[d];
      const auto& [first, second] = *lacking.begin();
      one[first.first] = first.second;
      one[second.first] = second.second;
      int news = 0;
      for (const Pair& pair : pairs_of(one)) news += lacking.contains(pair) ? 1 : 0;
      if (news > most) best = one, most = news;
    }
    for (const Pair& pair : pairs_of(best)) lacking.erase(pair);
    all.push_back(best);
  }
  return all;
}

std::vector<Combination> whole_product() {
  const Combination sizes = sizes_of_dimensions();
  std::vector<Combination> all = {{}};
  for (std::size_t d = 0; d < kDimensions; ++d) {
    std::vector<Combination> longer;
    for (Combination one : all)
      for (one[d] = 0; one[d] < sizes[d]; ++one[d]) longer.push_back(one);
    all = std::move(longer);
  }
  return all;
}

bool runs_all() { return std::getenv("SLUICE_WHOLE_PRODUCT") != nullptr; }

const std::vector<Combination>& combinations() {
  static const std::vector<Combination> all = runs_all() ? whole_product() : covering_combinations();
  return all;
}

// A placement that sees random costs, so that both units have work whatever its rule is.
class RandomlyPriced final : public experts::Placement {
 public:
  RandomlyPriced(std::unique_ptr<experts::Placement> inner, std::uint64_t seed)
      : inner_(std::move(inner)), random_(seed) {}
  void assign(const experts::Demand& demand, const experts::PlacementCosts& costs,
              experts::Assignment& out) override {
    host_.clear();
    device_.clear();
    transfer_.clear();
    for (std::size_t i = 0; i < demand.experts.size(); ++i) {
      host_.push_back(static_cast<double>(1 + random_() % 8) * demand.tokens[i]);
      device_.push_back(static_cast<double>(1 + random_() % 4));
      const double copy = static_cast<double>(1 + random_() % 8);
      transfer_.push_back(costs.on_device[i] != 0 ? 0 : copy);
    }
    experts::PlacementCosts priced = costs;
    priced.t_host = host_;
    priced.t_device = device_;
    priced.transfer = transfer_;
    inner_->assign(demand, priced, out);
  }
  std::string name() const override { return inner_->name(); }

 private:
  std::unique_ptr<experts::Placement> inner_;
  std::mt19937_64 random_;
  std::vector<double> host_, device_, transfer_;
};

class DeviceProduct : public DeviceUnitTest {
 protected:
  // What the host alone computes, with two threads.
  const std::vector<float>& hosts(std::size_t batch, Math math) {
    auto [at, is_new] = hosts_.try_emplace({batch, math});
    if (is_new) at->second = run(batch, math, nullptr);
    return at->second;
  }
  std::map<std::pair<std::size_t, Math>, std::vector<float>> hosts_;
};

TEST_P(DeviceProduct, HasTheHostsBits) {
  const std::vector<std::string> models = sluice::testing::golden_model_names();
  std::size_t ran = 0;
  std::uint64_t on_device = 0, stayed = 0;
  for (const Combination& one : combinations()) {
    if (models[one[kModel]] != GetParam()) continue;
    ++ran;
    const experts::PlacementPolicy& placement = experts::placement_policies()[one[kPlacement]];
    const std::size_t batch = kBatches[one[kBatch]];
    const auto threads = static_cast<unsigned>(1 + one[kThreads]);
    const Math math = one[kMath] == 0 ? Math::kF32 : Math::kAuto;
    const auto slots = static_cast<std::uint32_t>(kSlotShares[one[kSlots]] *
                                                  static_cast<double>(model_.config.moe.experts)) *
                       model_.config.sparse_layers();
    SCOPED_TRACE(std::string(placement.name) + ", " + std::to_string(slots) + " slots, B " +
                 std::to_string(batch) + ", " + std::to_string(threads) + " threads, " +
                 (math == Math::kF32 ? "f32" : "auto"));
    const std::vector<float>& expected = hosts(batch, math);
    ASSERT_FALSE(expected.empty());
    DeviceFor device({.slots = slots, .staging = 3, .threads = threads, .placement = [&] {
                        return std::make_unique<RandomlyPriced>(placement.make(), kProductSeed + ran);
                      }});
    adjust_ = [threads](EngineOptions& options) { options.threads = threads; };
    EXPECT_EQ(run(batch, math, &device), expected);
    adjust_ = nullptr;
    const fetch::DeviceStoreCounters& counters = device.counters;
    on_device += counters.hits + counters.loads + counters.streamed;
    stayed += counters.hits;
  }
  EXPECT_GE(ran, experts::placement_policies().size());
  if (!model_.experts.empty()) {
    EXPECT_GT(on_device, 0u);
    EXPECT_GT(stayed, 0u);
  }
  std::cout << ran << " combinations, " << on_device << " experts computed there, " << stayed
            << " of them from slots\n";
}

INSTANTIATE_TEST_SUITE_P(AllModels, DeviceProduct,
                         ::testing::ValuesIn(sluice::testing::golden_model_names()));

TEST(DeviceProductRows, MeetEveryPairOfValues) {
  const Combination sizes = sizes_of_dimensions();
  std::set<Pair> met;
  for (const Combination& one : combinations())
    for (const Pair& pair : pairs_of(one)) met.insert(pair);
  EXPECT_EQ(met.size(), count_of_pairs(sizes));
  std::size_t product = 1;
  for (const std::size_t size : sizes) product *= size;
  if (runs_all()) {
    EXPECT_EQ(std::set(combinations().begin(), combinations().end()).size(), product);
  }
  std::cout << combinations().size() << " of " << product << " combinations, " << met.size() << " pairs\n";
}

}  // namespace
}  // namespace sluice::engine::device_product_test
