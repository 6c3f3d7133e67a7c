#include "engine/plan/unit_forecast.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <iostream>
#include <random>

namespace sluice::engine {
namespace {

experts::ExpertCosts costs(double host, double device, double transfer) {
  experts::ExpertCosts costs;
  costs.run.per_token = host;
  costs.device.run.fixed = device;
  costs.device.transfer = transfer;
  return costs;
}

const UnitShape kShape = {.experts = 64, .top_k = 6, .slots = 16, .buffers = 2};

TEST(UnitForecast, OneTokenByHand) {
  // Six experts, two of them there. Host: 6 · 3. Device: 2 · 1, then copies of 2 each, computed behind them.
  const UnitForecast found = forecast_units(costs(3, 1, 2), kShape, 1);
  EXPECT_EQ(found.active, 6u);
  EXPECT_EQ(found.resident, 2u);
  EXPECT_DOUBLE_EQ(found.host, 18);
  EXPECT_DOUBLE_EQ(found.device, 9);  // the last copy arrives at 8
  EXPECT_LE(found.both, 9);
  EXPECT_TRUE(found.device_helps());
}

TEST(UnitForecast, WhatIsReadInPlaceWaitsForNoLink) {
  experts::ExpertCosts shared = costs(3, 1, 1e6);
  shared.device.in_place = true;
  const UnitForecast found = forecast_units(shared, kShape, 1);
  EXPECT_DOUBLE_EQ(found.device, 6);
  EXPECT_EQ(found.copied, 0u);
}

TEST(UnitForecast, SlowLinksAndNoSlotsHelpNowhere) {
  UnitShape empty = kShape;
  empty.slots = 0;
  EXPECT_TRUE(device_helps_nowhere(costs(1, 1, 1e6), empty, 64));
  EXPECT_FALSE(device_helps_nowhere(costs(1, 1, 5), kShape, 1));  // what stays there is of use …
  EXPECT_TRUE(device_helps_nowhere(costs(1, 1, 7), kShape, 1));  // … unless the host needs 6 for all of them
  EXPECT_TRUE(device_helps_nowhere(costs(1, 1, 1e6), kShape, 64));
  EXPECT_FALSE(device_helps_nowhere(costs(1, 1, 2), empty, 64));
  EXPECT_FALSE(device_helps_nowhere(costs(1, 1, 100), empty, 4096));  // in long prompts
  EXPECT_TRUE(device_helps_nowhere(costs(1, 100, 0.1), empty, 1));
}

TEST(UnitForecast, BothAreHardlySlowerThanTheHostAndOnAverageFasterThanEither) {
  const std::uint64_t seed = std::random_device{}();
  std::cout << "seed " << seed << '\n';
  std::mt19937_64 random(seed);
  const auto draw = [&](double least, double most) {
    return std::uniform_real_distribution<double>(least, most)(random);
  };
  constexpr int kDraws = 2000;
  double ratios = 0;
  for (int i = 0; i < kDraws; ++i) {
    UnitShape shape;
    shape.experts = 1 + static_cast<std::uint32_t>(random() % 64);
    shape.top_k = 1 + static_cast<std::uint32_t>(random() % shape.experts);
    shape.slots = static_cast<std::uint32_t>(random() % (shape.experts + 1));
    shape.buffers = 2 + static_cast<std::uint32_t>(random() % 3);
    const auto tokens = 1 + static_cast<std::uint32_t>(random() % 64);
    const double device = draw(0.1, 5), transfer = draw(0.1, 5);
    const UnitForecast found =
        forecast_units(costs(draw(0.1, 5), device, transfer), shape, tokens, Resident::kShare);
    ASSERT_LE(found.active, shape.experts);
    ASSERT_GE(found.active, std::min(shape.experts, shape.top_k));
    ASSERT_LE(found.resident, found.active);
    ASSERT_LE(found.copied, found.on_device);
    ASSERT_LE(found.on_device, found.active);
    // ratio-prefix counts the longer of copy and computation for each expert, and never chooses what it finds
    // slower than the host alone; the clock also waits for the first copy, or for the last computation.
    ASSERT_LE(found.both, found.host + transfer + device + 1e-9)
        << "run " << i << ": " << shape.experts << ' ' << shape.top_k << ' ' << shape.slots;
    ratios += found.both / std::min(found.host, found.device);
  }
  EXPECT_LT(ratios / kDraws, 1);
}

}  // namespace
}  // namespace sluice::engine
