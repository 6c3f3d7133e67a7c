// Experts that go to another tier and come back: every cache that adopts, against a plain model.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <iostream>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "experts/cache/cache_policies.h"
#include "experts/cache/residency.h"
#include "experts/core/equal_sizes.h"
#include "experts/decision_log.h"
#include "experts/registry.h"

namespace sluice::experts {
namespace {

using testing::ElementsAre;

constexpr Bytes kBytes = 10;
const EqualSizes kTen({.full = kBytes});

constexpr ExpertId id(std::uint16_t index) { return {0, index}; }

struct FarTier {
  std::string cache = "lru";
  std::uint32_t room = 3;
  Residency residency{make_cache(cache, {.seed = 4}), kTen, room* kBytes};

  const EventOutcome& event(const std::vector<ExpertId>& ids, const std::vector<ExpertId>& given = {},
                            const std::vector<ExpertId>& offered = {}) {
    return residency.on_event(ids, {}, {}, {}, {}, {.given = given, .offered = offered});
  }
  std::vector<std::uint16_t> resident() const {
    std::vector<std::uint16_t> all;
    for (const Placed& one : residency.resident()) all.push_back(one.id.index);
    return all;
  }
};

std::string text_of(const EventOutcome& outcome) {
  std::string text;
  append_decision(text, 0, 0, outcome);
  return text;
}

TEST(TierExchange, WhatIsGivenUpLeavesOnceItIsUsed) {
  FarTier tier;
  tier.event({id(1), id(2), id(3)});
  // 2 was here, 4 was not; 3 is not used. So there is room for all that is used and not given up.
  EXPECT_EQ(text_of(tier.event({id(2), id(4), id(5)}, {id(2), id(3), id(4)})),
            "0 0 hit 2=full>- miss 4=-,5=full give 0/2=full,0/3=full\n");
  EXPECT_THAT(tier.resident(), ElementsAre(1, 5));
}

TEST(TierExchange, WhatIsOfferedComesInBehindMissesAndPushesOutTheOldest) {
  FarTier tier;
  tier.event({id(1)});
  tier.event({id(2)});
  tier.event({id(3)});
  EXPECT_EQ(text_of(tier.event({id(4)}, {}, {id(7), id(8)})),
            "0 0 miss 4=full out 0/1=full,0/2=full,0/3=full adopt 0/7=full,0/8=full\n");
  EXPECT_THAT(tier.resident(), ElementsAre(4, 7, 8));
  // There is no room for a third: what is used, and what has just come in, stays.
  EXPECT_EQ(text_of(tier.event({id(4)}, {}, {id(1), id(2), id(3)})),
            "0 0 hit 4 out 0/7=full,0/8=full adopt 0/1=full,0/2=full\n");
}

TEST(TierExchange, ACacheThatWantsNothingAdoptsNothing) {
  FarTier tier{.cache = "none"};
  EXPECT_TRUE(tier.event({id(1)}, {id(1)}, {id(2)}).adopted.empty());
  EXPECT_TRUE(tier.resident().empty());
}

// Two LRU caches that exclude each other hold what one of their common size holds, if the first gets all that
// is used.
TEST(TierExchange, TwoOfLruAreOne) {
  constexpr std::uint32_t kNear = 4, kFar = 5;
  FarTier far{.room = kFar}, one{.room = kNear + kFar};
  Residency near(make_cache("lru", {}), kTen, kNear * kBytes, Tier::kDevice);
  std::mt19937_64 random(9);
  std::uint64_t misses = 0;
  for (int step = 0; step < 4000; ++step) {
    const ExpertId used = id(static_cast<std::uint16_t>(std::min(random() % 20, random() % 20)));
    const std::vector<ExpertId> ids = {used};
    const EventOutcome& of_near = near.on_event(ids);
    std::vector<ExpertId> offered;
    for (const Eviction& gone : of_near.evicted) offered.push_back(gone.id);
    const std::vector<ExpertId> asked = of_near.misses.empty() ? std::vector<ExpertId>() : ids;
    const EventOutcome& of_far = far.event(asked, asked, offered);
    const std::uint64_t missed = of_far.misses.size();
    misses += missed;
    EXPECT_EQ(missed, one.event(ids).misses.size()) << step;
    std::set<ExpertId> both;
    for (const Residency* half : {&near, &far.residency})
      for (const Placed& placed : half->resident()) EXPECT_TRUE(both.insert(placed.id).second);
    std::set<ExpertId> all;
    for (const Placed& placed : one.residency.resident()) all.insert(placed.id);
    EXPECT_EQ(both, all);
    if (testing::Test::HasFailure()) return;
  }
  EXPECT_GT(misses, 400u);
}

// Whatever is given and offered: no more than the room, no expert twice, nothing that was given stays, and
// the outcome says all that changes.
TEST(TierExchange, EveryCacheThatAdoptsKeepsToThePlainModel) {
  constexpr std::uint64_t kSeed = 20261124;
  std::cout << "seed " << kSeed << '\n';
  std::mt19937_64 random(kSeed);
  int caches = 0;
  std::uint64_t adopted = 0, refused = 0, given = 0;
  for (const CachePolicy& policy : cache_policies()) {
    if (!policy.adopts) continue;
    SCOPED_TRACE(policy.name);
    ++caches;
    for (const std::uint32_t room : {0u, 1u, 5u, 11u, 40u}) {
      FarTier tier{.cache = std::string(policy.name), .room = room};
      std::set<ExpertId> here;
      for (int step = 0; step < 400; ++step) {
        std::vector<ExpertId> used, away, back;
        for (std::uint16_t e = 0; e < 24; ++e) {
          const std::uint64_t what = random() % 12;
          if (what < 3) used.push_back(id(e));
          if (what == 2 || (what == 3 && here.contains(id(e)))) away.push_back(id(e));
          if (what == 4 && !here.contains(id(e))) back.push_back(id(e));
        }
        std::ranges::shuffle(back, random);
        const EventOutcome& outcome = tier.event(used, away, back);
        for (const Eviction& gone : outcome.evicted) EXPECT_EQ(here.erase(gone.id), 1u);
        for (const auto* all : {&outcome.hits, &outcome.misses})
          for (const Admission& one : *all) {
            if (!one.parts.empty()) here.insert(one.id);
          }
        for (const Placed& one : outcome.adopted) {
          EXPECT_NE(std::ranges::find(back, one.id), back.end());
          EXPECT_TRUE(here.insert(one.id).second);
        }
        for (const ExpertId one : away) EXPECT_FALSE(here.contains(one));
        EXPECT_LE(here.size(), room);
        std::set<ExpertId> resident;
        for (const Placed& one : tier.residency.resident()) resident.insert(one.id);
        EXPECT_EQ(resident, here);
        adopted += outcome.adopted.size();
        refused += back.size() - outcome.adopted.size();
        given += outcome.given;
        if (testing::Test::HasFailure()) return;
      }
    }
  }
  std::cout << caches << " caches, " << given << " given up, " << adopted << " adopted, " << refused
            << " refused\n";
  EXPECT_GE(caches, 6);
  for (const std::uint64_t count : {adopted, refused, given}) EXPECT_GT(count, 1000u);
}

}  // namespace
}  // namespace sluice::experts
