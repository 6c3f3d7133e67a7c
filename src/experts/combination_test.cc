#include "experts/combination.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/error.h"
#include "experts/registry.h"
#include "experts/routing/slice_names.h"

namespace sluice::experts {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;
using Names = std::vector<Named<RouterPolicy>>;

std::string refusal(const Combination& combination) {
  try {
    check_combination(combination);
    return "";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kUsage);
    return error.what();
  }
}

// SPEC §5.3, as far as it is built.
TEST(Combination, Valid) {
  const Names exact = {"exact"}, prior = {"cache-prior"}, cumsum = {"cumsum"};
  for (Family family : {Family::kRaw, Family::kSplit}) {
    for (const Named<CachePolicy> cache : {"lru", "zip-pools", "none", "static"}) {
      EXPECT_EQ(refusal({.family = family, .routers = exact, .cache = cache}), "");
      EXPECT_EQ(refusal({.family = family, .routers = prior, .cache = cache}), "");
      EXPECT_EQ(refusal({.family = family, .routers = cumsum, .cache = cache}), "");
    }
  }
  for (PrecisionMode precision : {PrecisionMode::kDbsc, PrecisionMode::kHigh, PrecisionMode::kLow}) {
    for (const Names* routers : {&exact, &prior, &cumsum})
      EXPECT_EQ(
          refusal(
              {.family = Family::kSliced, .routers = *routers, .cache = "slice-lru", .precision = precision}),
          "");
    if (precision != PrecisionMode::kDbsc) {
      EXPECT_EQ(
          refusal({.family = Family::kSliced, .routers = exact, .cache = "lru", .precision = precision}), "");
    }
  }
  for (ConstraintMode mode : {ConstraintMode::kBoost, ConstraintMode::kAdaptive, ConstraintMode::kHard})
    EXPECT_EQ(refusal({.routers = prior, .cache = "lru", .constraint = mode}), "");
  EXPECT_EQ(refusal({.routers = cumsum, .cache = "lru", .constraint = ConstraintMode::kHard}), "");
}

TEST(Combination, Refused) {
  const Names exact = {"exact"}, cumsum = {"cumsum"}, two = {"cache-prior", "cumsum"}, played = {"recorded"};
  constexpr Family kSliced = Family::kSliced;
  EXPECT_THAT(
      refusal({.family = kSliced, .routers = exact, .cache = "zip-pools", .precision = PrecisionMode::kHigh}),
      HasSubstr("slices"));
  for (Family family : {Family::kRaw, Family::kSplit})
    EXPECT_THAT(refusal({.family = family, .routers = exact, .cache = "slice-lru"}), HasSubstr("slice-lru"));
  EXPECT_THAT(refusal({.routers = exact, .cache = "lru", .precision = PrecisionMode::kDbsc}),
              HasSubstr("two precisions"));
  EXPECT_THAT(refusal({.family = kSliced, .routers = exact, .cache = "slice-lru"}), HasSubstr("dbsc"));
  EXPECT_THAT(
      refusal({.family = kSliced, .routers = exact, .cache = "lru", .precision = PrecisionMode::kDbsc}),
      HasSubstr("the precision dbsc needs a cache"));
  EXPECT_THAT(refusal({.routers = two, .cache = "lru"}), HasSubstr("cache-prior and cumsum"));
  for (const ConstraintMode mode : {ConstraintMode::kBoost, ConstraintMode::kAdaptive, ConstraintMode::kHard})
    EXPECT_THAT(refusal({.routers = exact, .cache = "lru", .constraint = mode}),
                AllOf(StartsWith("--constraint: a limit on misses"), HasSubstr("exact"),
                      HasSubstr("found " + std::string(constraint_name(mode))),
                      HasSubstr("add --router cache-prior, or give --constraint none")));
  EXPECT_THAT(refusal({.routers = cumsum, .cache = "lru", .constraint = ConstraintMode::kAdaptive}),
              HasSubstr("lambda"));
  const Combination slices = {
      .family = kSliced, .routers = exact, .cache = "slice-lru", .precision = PrecisionMode::kHigh};
  const auto with = [&](auto change) {
    Combination combination = slices;
    change(combination);
    return refusal(combination);
  };
  for (const SchedulerPolicy& scheduler : scheduler_policies())
    EXPECT_EQ(with([&](Combination& c) { c.scheduler = scheduler.name; }) == "", !scheduler.by_costs)
        << scheduler.name;
  for (const PrefetchPolicy& prefetch : prefetch_policies())
    for (const bool told : {false, true})
      EXPECT_EQ(with([&](Combination& c) {
                  c.prefetch = prefetch.name;
                  c.residual = c.transitions = told;
                }) == "",
                told || prefetch.needs == PrefetchNeeds::kNothing)
          << prefetch.name;
  EXPECT_EQ(&find_prefetch("lookahead"), &find_prefetch("stream"));
  EXPECT_THAT(with([](Combination& c) { c.whole_layers = true; }), HasSubstr("whole layers"));
  for (const double rho : {0.0, 0.5}) {
    for (const InitialSlices initial : {InitialSlices::kWarmup, InitialSlices::kLastLayer}) {
      const SlicesConfig config{.initial = initial, .warmup = {.rho = rho}};
      const bool legal = rho == 0 && initial == InitialSlices::kWarmup;
      EXPECT_EQ(with([&](Combination& c) {
                  c.precision = PrecisionMode::kLow;
                  c.slices = &config;
                }) == "",
                legal);
      EXPECT_EQ(with([&](Combination& c) { c.slices = &config; }), "");
    }
  }

  // A limit on the loss: every change asks the guard first.
  const Names prior = {"cache-prior"};
  const SlicesConfig fetch{.rules = {.lsb_miss = LsbMiss::kFetch}};
  const auto limited = [&](auto change) {
    return with([&](Combination& c) {
      c.precision = PrecisionMode::kDbsc;
      c.routers = prior;
      c.constraint = ConstraintMode::kHard;
      c.slices = &fetch;
      c.loss_limited = true;
      change(c);
    });
  };
  EXPECT_EQ(limited([](Combination&) {}), "");
  EXPECT_EQ(limited([&](Combination& c) { c.routers = exact, c.constraint = ConstraintMode::kNone; }), "");
  EXPECT_THAT(limited([&](Combination& c) { c.routers = cumsum; }), HasSubstr("counts replaced experts"));
  EXPECT_THAT(limited([&](Combination& c) { c.routers = played; }), HasSubstr("the router recorded"));
  EXPECT_THAT(limited([&](Combination& c) { c.routers = played, c.constraint = ConstraintMode::kNone; }),
              HasSubstr("counts replaced experts"));
  EXPECT_THAT(limited([](Combination& c) { c.constraint = ConstraintMode::kBoost; }),
              HasSubstr("counts replaced experts"));
  EXPECT_THAT(limited([](Combination& c) { c.constraint = ConstraintMode::kNone; }),
              HasSubstr("counts replaced experts"));
  // Without slices it counts what smoe replaces.
  const Names smoe = {"smoe"};
  EXPECT_EQ(refusal({.routers = exact, .cache = "lru", .loss_limited = true}), "");
  EXPECT_EQ(refusal({.routers = smoe, .cache = "lru", .loss_limited = true}), "");
  EXPECT_THAT(refusal({.routers = prior, .cache = "lru", .loss_limited = true}), HasSubstr("--router"));
  EXPECT_THAT(refusal({.routers = played, .cache = "lru", .loss_limited = true}), HasSubstr("--router"));
  EXPECT_EQ(limited([&](Combination& c) { c.routers = smoe, c.constraint = ConstraintMode::kNone; }), "");
  EXPECT_THAT(limited([&](Combination& c) { c.routers = smoe; }), HasSubstr("both replace experts"));
  const SlicesConfig skip{.rules = {.lsb_miss = LsbMiss::kSkip}};
  EXPECT_THAT(limited([&](Combination& c) { c.slices = &skip; }), HasSubstr("--lsb-miss"));
}

TEST(Combination, OnlyADeviceComputesElsewhere) {
  const Names exact = {"exact"};
  for (const PlacementPolicy& placement : placement_policies()) {
    const std::string alone = refusal({.routers = exact, .cache = "lru", .placement = placement.name});
    EXPECT_EQ(alone.empty(), placement.name == "cpu") << alone;
    EXPECT_EQ(
        refusal(
            {.routers = exact, .cache = "lru", .placement = placement.name, .device_cache = "workload-ema"}),
        "");
  }
  for (const CachePolicy& cache : cache_policies())
    EXPECT_EQ(refusal({.routers = exact, .cache = "lru", .device_cache = cache.name}).empty(),
              !cache.pooled && !cache.sliced)
        << cache.name;
  EXPECT_THAT(refusal({.cache = "lru", .whole_layers = true, .device_cache = "lru"}),
              HasSubstr("whole layers"));
}

TEST(Combination, ADeviceTakesSlicesThatDependOnNoOtherMemory) {
  const Names exact = {"exact"}, prior = {"cache-prior"};
  const auto beside_device = [&](PrecisionMode precision, const auto& change) {
    Combination combination{.family = Family::kSliced,
                            .routers = exact,
                            .cache = "slice-lru",
                            .precision = precision,
                            .placement = "ratio-prefix",
                            .device_cache = "lru"};
    change(combination);
    return refusal(combination);
  };
  for (const PrecisionMode precision : {PrecisionMode::kHigh, PrecisionMode::kLow, PrecisionMode::kDbsc}) {
    const auto with = [&](const auto& change) { return beside_device(precision, change); };
    const SlicesConfig skip{.rules = {.lsb_miss = LsbMiss::kSkip}, .warmup = {.rho = 0}},
        fetch{.rules = {.lsb_miss = LsbMiss::kFetch}, .warmup = {.rho = 0}};
    EXPECT_EQ(with([&](Combination& c) { c.slices = &fetch; }), "");
    EXPECT_EQ(with([&](Combination& c) { c.slices = &skip; }).empty(), precision == PrecisionMode::kLow);
    EXPECT_THAT(with([&](Combination& c) { c.tiers = Tiers::kExclusive; }),
                HasSubstr("experts in slices do not come back"));
    EXPECT_THAT(with([&](Combination& c) { c.device_cache = "slice-lru"; }), HasSubstr("--device-cache"));
    EXPECT_THAT(with([&](Combination& c) { c.routers = prior, c.constraint = ConstraintMode::kHard; }),
                HasSubstr("--constraint: a limit on misses counts what the host reads"));
  }
}

}  // namespace
}  // namespace sluice::experts
