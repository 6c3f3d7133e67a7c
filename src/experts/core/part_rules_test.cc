#include "experts/core/part_rules.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace sluice::experts {
namespace {

TEST(PartRules, StandInTheOrderOfFamilies) {
  ASSERT_EQ(all_part_rules().size(), 3u);
  for (const Family family : {Family::kRaw, Family::kSplit, Family::kSliced})
    EXPECT_EQ(part_rules(family).family, family);
}

TEST(PartRules, OfEachFamilyAgreeWithEachOther) {
  for (const PartRules& rules : all_part_rules()) {
    SCOPED_TRACE(static_cast<int>(rules.family));
    EXPECT_EQ(rules.stored, Parts(rules.base) | rules.rest);
    EXPECT_FALSE(rules.rest.has(rules.base));
    EXPECT_TRUE(rules.stored.has_all(rules.least) && !rules.least.empty());
    EXPECT_EQ(rules.stored.has(Part::kFull), rules.words == WordSource::kStored);
    EXPECT_EQ(rules.named_parts, rules.stored != rules.least) << "only then a use has a choice";
    const auto may_be = [&](Parts parts) { return std::ranges::count(rules.states, parts); };
    EXPECT_EQ(may_be(rules.stored), 1);
    EXPECT_EQ(may_be(rules.least), 1);
    EXPECT_EQ(may_be(Part::kFull), rules.words != WordSource::kNowhere);
  }
}

// From SPEC §5.1 alone: every set of parts, those of two families included.
TEST(PartRules, DecideWhichSetsAreLegalAndComputable) {
  const std::vector<Parts> legal = {
      {}, Part::kFull, Part::kSm, Part::kExp, Part::kSm | Part::kExp, Part::kMsb, Part::kMsb | Part::kLsb};
  for (unsigned bits = 0; bits < 32; ++bits) {
    const Parts parts = Parts::from_bits(bits);
    EXPECT_EQ(is_legal(parts), std::ranges::count(legal, parts) == 1) << bits;
    EXPECT_EQ(is_computable(parts), parts.has(Part::kFull) ||
                                        (parts.has(Part::kSm) && parts.has(Part::kExp)) ||
                                        parts.has(Part::kMsb))
        << bits;
  }
}

TEST(PartRules, SayWhatAUseNeedsAndWhereItIs) {
  const PartRules &raw = part_rules(Family::kRaw), &split = part_rules(Family::kSplit),
                  &sliced = part_rules(Family::kSliced);
  EXPECT_EQ(raw.needed({}), Parts(Part::kFull));
  EXPECT_EQ(split.needed({}), Part::kSm | Part::kExp);
  EXPECT_EQ(sliced.needed(Part::kMsb), Parts(Part::kMsb));
  EXPECT_EQ(sliced.needed(Part::kLsb), Part::kMsb | Part::kLsb) << "no view of the lower slice alone";

  EXPECT_TRUE(raw.in_base(Part::kFull) && !raw.in_rest(Part::kFull));
  EXPECT_TRUE(split.in_base(Part::kSm) && split.in_rest(Part::kExp));
  EXPECT_FALSE(split.in_base(Part::kFull) || split.in_rest(Part::kSm | Part::kFull));
  EXPECT_TRUE(sliced.in_base(Part::kMsb | Part::kLsb) && sliced.in_rest(Part::kMsb | Part::kLsb));
}

TEST(PartRules, GiveSizesToTheirOwnParts) {
  for (const PartRules& rules : all_part_rules()) {
    const bool raw = rules.family == Family::kRaw;
    const ExpertBytes bytes = rules.bytes(5, raw ? 0 : 7, raw ? 5 : rules.family == Family::kSplit ? 11 : 0);
    EXPECT_EQ(bytes.of(rules.base), 5u);
    EXPECT_EQ(bytes.of(rules.stored), raw ? 5u : 12u);
    unsigned sizes = 0;
    for (const Bytes size : {bytes.full, bytes.sm, bytes.exp, bytes.msb, bytes.lsb}) sizes += size > 0;
    EXPECT_EQ(sizes, rules.family == Family::kSplit ? 3u : raw ? 1u : 2u);
  }
}

}  // namespace
}  // namespace sluice::experts
