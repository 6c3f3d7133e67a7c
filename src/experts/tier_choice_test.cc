#include "experts/tier_choice.h"

#include <gtest/gtest.h>

#include <string>

#include "experts/core/equal_sizes.h"

namespace sluice::experts::tier_choice_test {
namespace {

constexpr std::uint32_t kLayers = 3, kExperts = 4;

// The experts of the last layer are larger than the others.
class Sizes final : public ExpertSizes {
 public:
  ExpertBytes bytes(ExpertId id) const override {
    const Bytes full = id.layer + 1 == kLayers ? 20 : 10;
    return {.full = full, .sm = full / 2, .exp = 1, .msb = full, .lsb = 1};
  }
};

TierChoice choice(const char* cache, Bytes capacity, bool by_layer = false, Parts keep = Part::kFull) {
  const Sizes sizes;
  return usual_tiers({.cache = find_cache(cache),
                      .sizes = sizes,
                      .keep = keep,
                      .layers = kLayers,
                      .experts = kExperts,
                      .by_layer = by_layer,
                      .capacity = capacity});
}

TEST(TierChoice, ExclusiveWhereTheHostLacksRoom) {
  constexpr Bytes kAll = kExperts * (10 + 10 + 20);
  EXPECT_EQ(choice("lru", kAll).tiers, Tiers::kInclusive);
  EXPECT_EQ(choice("lru", kAll - 1).tiers, Tiers::kExclusive);
  EXPECT_EQ(choice("lru", kExperts * 20, true).tiers, Tiers::kInclusive);  // the largest layer fits
  EXPECT_EQ(choice("lru", kExperts * 20 - 1, true).tiers, Tiers::kExclusive);
  const Parts packed = Part::kSm | Part::kExp;
  EXPECT_EQ(choice("lru", kExperts * (6 + 6 + 11), false, packed).tiers, Tiers::kInclusive);
  EXPECT_EQ(choice("lru", kExperts * (6 + 6 + 11) - 1, false, packed).tiers, Tiers::kExclusive);
  EXPECT_EQ(choice("none", kAll).tiers, Tiers::kExclusive);  // whatever its room, it holds nothing
}

TEST(TierChoice, InclusiveWhereNothingComesBack) {
  int adopting = 0;
  for (const CachePolicy& policy : cache_policies()) {
    SCOPED_TRACE(policy.name);
    const TierChoice small = choice(std::string(policy.name).c_str(), 1);
    EXPECT_EQ(small.tiers == Tiers::kExclusive, policy.adopts) << small.why;
    EXPECT_FALSE(small.why.empty());
    adopting += policy.adopts ? 1 : 0;
  }
  EXPECT_EQ(adopting, 7);
  EXPECT_EQ(choice("lru", 1, false, Part::kMsb | Part::kLsb).tiers, Tiers::kInclusive);
  const EqualSizes sizes({.full = 1, .sm = 1});
  HostMemory host{.cache = find_cache("lru"),
                  .sizes = sizes,
                  .keep = Part::kSm | Part::kExp,
                  .layers = 1,
                  .experts = 2,
                  .capacity = 1,
                  .would_repack = true};
  EXPECT_EQ(usual_tiers(host).tiers, Tiers::kInclusive);
  host.would_repack = false;
  EXPECT_EQ(usual_tiers(host).tiers, Tiers::kExclusive);
}

}  // namespace
}  // namespace sluice::experts::tier_choice_test
