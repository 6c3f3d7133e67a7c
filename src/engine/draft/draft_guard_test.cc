// Drafts while they pay, on both sides: what steps are given to take, and what the guard makes of it.
#include "engine/draft/draft_guard.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace sluice::engine {
namespace {

constexpr DraftGuard::FreshMeans kHalfFresh = {16, 8, 8, 8, 8}, kAllFresh = {16, 16, 16, 16, 16};

DraftOffer offer_of(double chance, std::size_t count = kMostDrafts) {
  DraftOffer offer{.count = count};
  double all = 1;
  for (double& one : offer.chance) one = all *= chance;
  return offer;
}

// A guard that has seen steps without drafts.
DraftGuard guard_of(const DecodeCost& plain, const DraftGuard::FreshMeans& fresh, std::size_t sequences = 1) {
  DraftGuard guard;
  for (int i = 0; i < 8; ++i) guard.count({.sequences = sequences}, plain, fresh);
  return guard;
}

std::size_t chosen(DraftGuard& guard, const DraftOffer& offer, std::size_t most = 100) {
  std::size_t count = 99;
  guard.choose({&offer, 1}, most, {&count, 1});
  return count;
}

DraftShape drafts_of(std::size_t count) { return shape_of({&count, 1}); }

// In memory: what computing the experts costs, and the dense part once.
constexpr DecodeCost kInMemory = {
    .seconds = 0.010, .moe_s = 0.004, .demand_s = 0, .accesses = 16, .misses = 0};
// From the disk: a step is what it reads, and each further token reads as much again.
constexpr DecodeCost kFromDisk = {
    .seconds = 0.100, .moe_s = 0.098, .demand_s = 0.096, .accesses = 16, .misses = 8};

TEST(DraftGuard, DraftsWhatIsLikelyWhereTokensCostLittle) {
  DraftGuard guard = guard_of(kInMemory, kHalfFresh);
  EXPECT_EQ(chosen(guard, offer_of(0.9)), kMostDrafts);
  EXPECT_EQ(chosen(guard, offer_of(0.9, 2)), 2u);
  EXPECT_EQ(chosen(guard, offer_of(0.9), 3), 3u);
  EXPECT_EQ(chosen(guard, offer_of(0.9), 0), 0u);
  EXPECT_EQ(chosen(guard, offer_of(0.2)), 0u);
}

TEST(DraftGuard, DraftsNothingWhereEachTokenReadsItsOwn) {
  DraftGuard guard = guard_of(kFromDisk, kHalfFresh);
  for (const double chance : {0.5, 0.9, 0.99}) EXPECT_EQ(chosen(guard, offer_of(chance)), 0u) << chance;
  // … but does where tokens use the same experts: then a further one reads little.
  DraftGuard same = guard_of(kFromDisk, {16, 1, 1, 0, 0});
  EXPECT_GT(chosen(same, offer_of(0.9)), 0u);
}

TEST(DraftGuard, ExpectsNoMoreReadsThanExpertsThatAreNew) {
  // Without a cache everything is read: a token adds the experts that those before it do not use.
  const DecodeCost none = {.seconds = 0.1, .moe_s = 0.1, .demand_s = 0.1, .accesses = 16, .misses = 16};
  const DraftGuard guard = guard_of(none, {16, 8, 4, 2, 0});
  EXPECT_NEAR(guard.seconds(drafts_of(1)), 0.15, 1e-9);
  EXPECT_NEAR(guard.seconds(drafts_of(4)), 0.1 * 30 / 16, 1e-9);
  // With one that holds the last tokens' experts it reads what it would read by itself.
  const DecodeCost some = {.seconds = 0.1, .moe_s = 0.1, .demand_s = 0.1, .accesses = 16, .misses = 4};
  EXPECT_NEAR(guard_of(some, {16, 8, 8, 8, 8}).seconds(drafts_of(4)), 0.5, 1e-9);
}

TEST(DraftGuard, KnowsNothingBeforeStepsWithoutDrafts) {
  DraftGuard guard;
  EXPECT_EQ(guard.seconds(drafts_of(2)), 0);
  for (int i = 0; i < 3; ++i) {
    guard.count({}, kInMemory, kHalfFresh);
    EXPECT_EQ(chosen(guard, offer_of(1)), 0u) << i;
  }
  guard.count({}, kInMemory, kHalfFresh);
  EXPECT_EQ(chosen(guard, offer_of(1)), kMostDrafts);
}

TEST(DraftGuard, BelievesWhatStepsTake) {
  DraftGuard guard = guard_of(kInMemory, kHalfFresh);
  const DraftOffer offer = offer_of(0.8);
  ASSERT_GE(chosen(guard, offer), 2u);
  // Each token takes as long as a step of its own: no number of them pays any more.
  for (std::size_t tried = 0; tried < 40; ++tried) {
    const std::size_t count = chosen(guard, offer);
    if (count == 0) break;
    guard.count(drafts_of(count), {.seconds = 0.010 * (1 + static_cast<double>(count))}, kHalfFresh);
    guard.count({}, kInMemory, kHalfFresh);
  }
  EXPECT_EQ(chosen(guard, offer), 0u);
  // After a long time it is tried again.
  std::size_t later = 0;
  for (; later < 2000 && chosen(guard, offer) == 0; ++later) guard.count({}, kInMemory, kHalfFresh);
  EXPECT_GT(later, 50u);
  EXPECT_LT(later, 2000u);
}

TEST(DraftGuard, LearnsThatStepsTakeLessThanCounted) {
  DraftGuard guard = guard_of(kInMemory, kAllFresh);
  const double counted = guard.seconds(drafts_of(4));
  for (int i = 0; i < 30; ++i) guard.count(drafts_of(4), {.seconds = 0.011}, kAllFresh);
  EXPECT_LT(guard.seconds(drafts_of(4)), 0.012);
  EXPECT_GT(counted, 0.02);
}

TEST(DraftGuard, OneDisturbedStepChangesLittle) {
  DraftGuard guard = guard_of(kInMemory, kHalfFresh);
  DecodeCost disturbed = kInMemory;
  disturbed.seconds = 5;
  guard.count({}, disturbed, kHalfFresh);
  EXPECT_LT(guard.seconds({}), 0.02);
}

TEST(DraftGuard, MeasuresAgainWithoutDrafts) {
  DraftGuard guard = guard_of(kInMemory, kHalfFresh);
  std::size_t steps = 0;
  for (; steps < 1000 && chosen(guard, offer_of(0.95)) != 0; ++steps)
    guard.count(drafts_of(4), {.seconds = 0.012}, kHalfFresh);
  EXPECT_EQ(steps, 24u);
  guard.count({}, kInMemory, kHalfFresh);
  EXPECT_EQ(chosen(guard, offer_of(0.95)), kMostDrafts);
}

TEST(DraftGuard, TakesTheLikeliestTokensOfSeveralSequences) {
  DraftGuard guard = guard_of(kInMemory, kHalfFresh, 3);
  const std::vector<DraftOffer> offers = {offer_of(0.2), offer_of(0.97), offer_of(0.9, 1)};
  std::vector<std::size_t> counts(3);
  guard.choose(offers, 100, counts);
  EXPECT_EQ(counts, (std::vector<std::size_t>{0, 4, 1}));
  guard.choose(offers, 2, counts);
  EXPECT_EQ(counts, (std::vector<std::size_t>{0, 2, 0}));
  const DraftShape shape = shape_of(counts);
  EXPECT_EQ(shape.sequences, 3u);
  EXPECT_EQ(shape.drafted(), 2u);
  // What one sequence costs says nothing about two.
  guard.choose(std::span(offers).first(2), 100, std::span(counts).first(2));
  EXPECT_EQ(counts[0] + counts[1], 0u);
}

TEST(DraftGuard, TakesAllWhenTold) {
  DraftGuard guard;
  guard.set_when(DraftWhen::kAlways);
  const std::vector<DraftOffer> offers = {offer_of(0.01), {}, offer_of(0.01, 3)};
  std::vector<std::size_t> counts(3);
  guard.choose(offers, 6, counts);
  EXPECT_EQ(counts, (std::vector<std::size_t>{4, 0, 2}));
}

}  // namespace
}  // namespace sluice::engine
