// Slices on a device, for every cache, precision and size of slots: plans against a plain model of which
// slices are where.
#include "experts/device_slices.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <iostream>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "experts/device_caches.h"
#include "experts/device_decider.h"
#include "experts/registry.h"

namespace sluice::experts::device_slices_test {
namespace {

constexpr Parts kBoth = Part::kMsb | Part::kLsb;
constexpr std::uint32_t kLayers = 2, kExperts = 9;
constexpr double kTransfer = 8, kMsb = .625, kLsb = .375;

struct Met {
  std::uint64_t slots = 0, msb = 0, lsb = 0, both = 0, spare = 0, updates = 0;
};

class PlainModel {
 public:
  PlainModel(PrecisionMode mode, Parts room, const CachePolicy& cache, std::uint32_t slots,
             std::uint64_t seed)
      : mode_(mode), room_(room), slots_(slots), random_(seed) {
    DeviceCaches caches{.cache = cache.name,
                        .layers = kLayers,
                        .experts = kExperts,
                        .top_k = 3,
                        .slots = slots,
                        .seed = seed};
    caches.workload.window = {.steps = 2, .swaps = 3};
    caches.workload.popularity.assign(kLayers, std::vector<double>(kExperts, 1));
    policies_.residencies = make_device_caches(caches);
    policies_.slices = device_slices(mode, room);
    costs_.run = {.fixed = 1};
    costs_.device = {.run = {.fixed = .5}, .transfer = kTransfer, .msb = kMsb, .lsb = kLsb};
    decider_.emplace(policies_, *placement_, costs_);
    for (const DeviceUpdate& one : decider_->start()) {
      EXPECT_EQ(one.parts, room);
      held_[one.id] = room;
    }
  }

  void event(std::uint32_t layer, Met& met) {
    std::vector<ExpertId> ids;
    std::vector<std::uint32_t> tokens, layer_tokens(kExperts, 0);
    std::vector<Parts> asked;
    std::vector<float> scores;
    const bool prompt = random_() % 5 == 0;
    for (std::uint16_t e = 0; e < kExperts; ++e) {
      scores.push_back(static_cast<float>(random_() % 64) / 64);
      if (random_() % 3 != 0 && e != 0) continue;
      ids.push_back({static_cast<std::uint16_t>(layer), e});
      tokens.push_back(layer_tokens[e] = 1 + random_() % 3);
      const bool high =
          prompt || mode_ == PrecisionMode::kHigh || (mode_ == PrecisionMode::kDbsc && random_() % 3 == 0);
      asked.push_back(high ? kBoth : Parts(Part::kMsb));
    }
    const StepKind kind = prompt ? StepKind::kPrompt : StepKind::kDecode;
    Assignment assignment;
    const DevicePlan& plan =
        decider_->decide({.demand = {ids, tokens},
                          .place = {.layer = layer, .step = kind, .layer_tokens = layer_tokens},
                          .step_tokens = 3,
                          .mean_scores = scores,
                          .asked = asked},
                         assignment);
    ASSERT_EQ(plan.uses.size(), ids.size());
    for (std::size_t i = 0; i < ids.size(); ++i) check_use(plan, ids[i], asked[i], met);
    for (const Eviction& gone : plan.evicted) held_.erase(gone.id);
    for (const DeviceUpdate& update : plan.updates) {
      EXPECT_EQ(update.parts, fits(least_parts(mode_)));
      EXPECT_EQ(update.remaining, time_of(update.parts));
      held_[update.id] = fits(update.parts);
      ++met.updates;
    }
    EXPECT_LE(held_.size(), std::size_t{slots_} * kLayers);
    decider_->end_layer();
  }

 private:
  static double time_of(Parts parts) {
    return kTransfer * ((parts.has(Part::kMsb) ? kMsb : 0) + (parts.has(Part::kLsb) ? kLsb : 0));
  }

  Parts fits(Parts parts) const { return parts - (parts - room_); }

  void check_use(const DevicePlan& plan, ExpertId id, Parts asked, Met& met) {
    SCOPED_TRACE(std::to_string(id.layer) + "/" + std::to_string(id.index));
    const DeviceUse& use = *std::ranges::find(plan.uses, id, &DeviceUse::id);
    const Parts there = held_.contains(id) ? held_[id] : Parts();
    const bool spare = mode_ == PrecisionMode::kDbsc && there == kBoth;
    EXPECT_EQ(use.view, spare ? kBoth : asked);
    met.spare += spare && asked != kBoth ? 1 : 0;
    const Parts missing = use.view - there;
    EXPECT_EQ(use.from, missing.empty() ? DeviceBytes::kSlot : DeviceBytes::kLink);
    if (!missing.empty()) {
      // And what is left of an update.
      EXPECT_GE(use.remaining, time_of(missing));
      EXPECT_LE(use.remaining, time_of(missing) + time_of(there));
    }
    ++(missing.empty() ? met.slots : missing == kBoth ? met.both : missing == Part::kLsb ? met.lsb : met.msb);
    if (use.stays)
      held_[id] = fits(there | use.view);
    else
      held_.erase(id);
  }

  const PrecisionMode mode_;
  const Parts room_;
  const std::uint32_t slots_;
  std::mt19937_64 random_;
  DevicePolicies policies_;
  std::unique_ptr<Placement> placement_ = Named<PlacementPolicy>("device")->make();
  ExpertCosts costs_;
  std::optional<DeviceDecider> decider_;
  std::map<ExpertId, Parts> held_;
};

TEST(SlicesOnDevice, EveryCacheKeepsToThePlainModel) {
  constexpr std::uint64_t kSeed = 20261126;
  std::cout << "seed " << kSeed << '\n';
  Met met;
  std::uint64_t seed = kSeed;
  for (const CachePolicy& cache : cache_policies()) {
    if (cache.oracle || cache.pooled || cache.sliced) continue;
    for (const PrecisionMode mode : {PrecisionMode::kHigh, PrecisionMode::kLow, PrecisionMode::kDbsc})
      for (const Parts room : {kBoth, Parts(Part::kMsb)})
        for (const std::uint32_t slots : {0u, 1u, 4u, kExperts}) {
          SCOPED_TRACE(std::string(cache.name) + ", precision " + std::string(precision_name(mode)) + ", " +
                       std::to_string(slots) + (room == kBoth ? " slots" : " slots of MSBs"));
          PlainModel model(mode, room, cache, slots, ++seed);
          for (std::uint32_t i = 0; i < 30; ++i) model.event(i % kLayers, met);
          if (HasFailure()) return;
        }
  }
  std::cout << met.slots << " from slots; brought: " << met.both << " both, " << met.msb << " MSB, "
            << met.lsb << " LSB alone; " << met.spare << " spare LSBs used, " << met.updates << " updates\n";
  for (const std::uint64_t count : {met.slots, met.msb, met.lsb, met.both, met.spare, met.updates})
    EXPECT_GT(count, 100u);
}

TEST(SlicesOnDevice, AnLsbStaysAsLongAsItsMsbAndWhereThereIsRoom) {
  constexpr ExpertId kOne{0, 1};
  SlicesOnDevice both(device_slices(PrecisionMode::kDbsc, kBoth)),
      msb(device_slices(PrecisionMode::kLow, Part::kMsb));
  both.used(kOne, Part::kMsb, true);
  EXPECT_EQ(both.view(kOne, Part::kMsb), Part::kMsb);
  both.used(kOne, kBoth, true);
  EXPECT_EQ(both.view(kOne, Part::kMsb), kBoth);  // it is there, so it is used
  both.used(kOne, kBoth, false);
  EXPECT_TRUE(both.parts(kOne).empty());
  msb.used(kOne, kBoth, true);
  EXPECT_EQ(msb.parts(kOne), Part::kMsb);
  EXPECT_EQ(msb.view(kOne, Part::kMsb), Part::kMsb);
  msb.gone(kOne);
  EXPECT_TRUE(msb.parts(kOne).empty());
}

}  // namespace
}  // namespace sluice::experts::device_slices_test
