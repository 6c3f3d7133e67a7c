// The caches of a device hold as many experts as there are slots, whatever their sizes.
#include "experts/device_caches.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <iostream>
#include <random>
#include <string>
#include <vector>

#include "base/error.h"
#include "experts/policy_choice.h"
#include "experts/registry.h"

namespace sluice::experts {
namespace {

constexpr std::uint32_t kLayers = 3, kExperts = 12, kTopK = 3, kSlots = 4;

DeviceCaches setting_of(const CachePolicy& policy) {
  DeviceCaches setting{.cache = std::string(policy.name),
                       .layers = kLayers,
                       .experts = kExperts,
                       .top_k = kTopK,
                       .slots = kSlots};
  setting.workload.popularity.assign(kLayers, std::vector<double>(kExperts, 1));
  return setting;
}

TEST(DeviceCaches, TakeExpertsWhereSomeAreComputedThere) {
  const PlacementPolicy &host = find_placement("cpu"), &device = find_placement("greedy");
  EXPECT_FALSE(takes_experts(host, nullptr, Tiers::kInclusive));
  EXPECT_FALSE(takes_experts(host, &host, Tiers::kInclusive));
  EXPECT_TRUE(takes_experts(host, &device, Tiers::kInclusive));
  EXPECT_TRUE(takes_experts(device, nullptr, Tiers::kInclusive));
  EXPECT_TRUE(takes_experts(device, &host, Tiers::kInclusive));
  EXPECT_TRUE(takes_experts(host, nullptr, Tiers::kExclusive));
}

// A host begins empty: whatever a cache that is not for a device alone keeps, it keeps without a start.
TEST(DeviceCaches, ThoseForADeviceAloneAreRefusedOnAHost) {
  int refused = 0;
  for (const CachePolicy& policy : cache_policies()) {
    SCOPED_TRACE(policy.name);
    if (why_for_a_device(policy).empty()) {
      EXPECT_NO_THROW(check_host_cache(policy));
      EXPECT_TRUE(policy.keeps || policy.name == "none");
      continue;
    }
    ++refused;
    EXPECT_FALSE(policy.keeps);
    try {
      check_host_cache(policy);
      ADD_FAILURE();
    } catch (const Error& error) {
      const std::string text = error.what();
      EXPECT_EQ(text.find("--cache: this cache is for a device"), 0u) << text;
      EXPECT_NE(text.find("--device-cache " + std::string(policy.name)), std::string::npos) << text;
      EXPECT_EQ(text.find("--ranks-of FILE") != std::string::npos, policy.by_popularity) << text;
    }
  }
  EXPECT_EQ(refused, 3);
}

TEST(DeviceCaches, HoldOneExpertASlot) {
  constexpr std::uint64_t kSeed = 19;
  std::mt19937_64 random(kSeed);
  int kinds = 0;
  for (const CachePolicy& policy : cache_policies()) {
    if (policy.oracle || policy.pooled || policy.sliced) continue;
    SCOPED_TRACE(policy.name);
    const auto caches = make_device_caches(setting_of(policy));
    ASSERT_EQ(caches.size(), policy.whole_layers ? 1u : kLayers);
    for (const auto& cache : caches) {
      EXPECT_EQ(cache->tier(), Tier::kDevice);
      EXPECT_EQ(cache->capacity(), kSlots * kLayers / caches.size());
      cache->start();
    }
    std::size_t most = 0;
    for (int event = 0; event < 300; ++event) {
      const auto layer = static_cast<std::uint16_t>(event % kLayers);
      std::vector<ExpertId> used;
      std::vector<std::uint32_t> tokens, all(kExperts);
      for (std::uint16_t e = 0; e < kExperts; ++e) {
        if (random() % 3 != 0) continue;
        used.push_back({layer, e});
        tokens.push_back(static_cast<std::uint32_t>(1 + random() % 3));
        all[e] = tokens.back();
      }
      const std::vector<float> scores(kExperts, 1.0f / kExperts);
      Residency& cache = *caches[caches.size() == 1 ? 0 : layer];
      cache.on_event(used, scores, tokens, {},
                     {.layer = layer, .step = StepKind::kDecode, .layer_tokens = all});
      EXPECT_EQ(cache.used(), cache.resident().size());
      most = std::max(most, cache.resident().size());
    }
    EXPECT_EQ(most, policy.keeps || policy.starts ? kSlots * kLayers / caches.size() : 0u);
    ++kinds;
  }
  std::cout << "seed " << kSeed << ", " << kinds << " caches\n";
  EXPECT_GE(kinds, 10);
}

TEST(DeviceCaches, LayersThatAreLeftOutHaveNoSlots) {
  int kinds = 0;
  for (const CachePolicy& policy : cache_policies()) {
    if (policy.oracle || policy.pooled || policy.sliced) continue;
    SCOPED_TRACE(policy.name);
    DeviceCaches setting = setting_of(policy);
    setting.slots = kExperts;
    setting.left_out = {0, 1, 0};
    const auto caches = make_device_caches(setting);
    ASSERT_EQ(caches.size(), policy.whole_layers ? 1u : kLayers);
    Bytes capacity = 0;
    for (const auto& cache : caches) {
      cache->start();
      capacity += cache->capacity();
      for (const Placed& one : cache->resident()) EXPECT_NE(one.id.layer, 1);
      if (policy.starts) {
        EXPECT_EQ(cache->used(), cache->capacity());
      }
    }
    EXPECT_EQ(capacity, kExperts * (kLayers - 1));
    if (!policy.whole_layers) {
      EXPECT_EQ(caches[1]->cache().name(), "none");
    }
    ++kinds;
  }
  EXPECT_GE(kinds, 10);
}

TEST(DevicePolicies, OfADeviceThatTakesNoExpertsKeepAndCopyNone) {
  DevicePolicyChoice choice{.caches = {.cache = "lru", .layers = 2, .experts = 4, .top_k = 2, .slots = 2},
                            .prefetch = &find_prefetch("all-next")};
  EXPECT_NE(make_device_policies(choice).prefetch, nullptr);
  EXPECT_EQ(make_device_policies(choice).residencies.front()->cache().name(), "lru");
  choice.takes = false;
  EXPECT_EQ(make_device_policies(choice).prefetch, nullptr);
  EXPECT_EQ(make_device_policies(choice).residencies.size(), 2u);
  EXPECT_EQ(make_device_policies(choice).residencies.front()->cache().name(), "none");
}

}  // namespace
}  // namespace sluice::experts
