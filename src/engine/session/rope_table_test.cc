#include "engine/session/rope_table.h"

#include <gtest/gtest.h>

#include <cmath>
#include <utility>
#include <vector>

namespace sluice::engine {
namespace {

model::RopeConfig yarn() {
  model::RopeConfig config;
  config.dims = 64;
  config.theta = 10000;
  config.scaling = model::RopeScaling::kYarn;
  config.factor = 40;
  config.original_max_positions = 4096;
  config.mscale = config.mscale_all_dim = 0.707;
  return config;
}

TEST(RopeTableTest, PlainFrequenciesArePowersOfTheta) {
  model::RopeConfig config;
  config.dims = 8;
  config.theta = 10000;
  const RopeTable table(config);
  ASSERT_EQ(table.half(), 4u);
  for (std::size_t i = 0; i < 4; ++i)
    EXPECT_NEAR(table.inverse_frequencies()[i], std::pow(10000.0, -static_cast<double>(i) / 4), 1e-7);
  float cos[4], sin[4];
  table.angles(3, cos, sin);
  EXPECT_NEAR(cos[0], std::cos(3.0), 1e-6);
  EXPECT_NEAR(sin[1], std::sin(0.3), 1e-6);
}

// SPEC §9: fast dimensions keep their frequency, slow ones are divided by the factor, with a ramp between.
// For these numbers (DeepSeek-V2-Lite) correction(32) = 10.5 and correction(1) = 22.5: the ramp runs from 10
// to 23.
TEST(RopeTableTest, YarnBlendsBetweenTheTwoCorrections) {
  const RopeTable table(yarn());
  const auto original = [](std::size_t i) { return std::pow(10000.0, -static_cast<double>(i) / 32); };
  EXPECT_NEAR(table.inverse_frequencies()[10] / original(10), 1.0, 1e-6);
  EXPECT_NEAR(table.inverse_frequencies()[23] / original(23), 1.0 / 40, 1e-6);
  const double ramp = (16.0 - 10) / (23 - 10);
  EXPECT_NEAR(table.inverse_frequencies()[16] / original(16), ramp / 40 + (1 - ramp), 1e-6);
}

// gpt-oss, whose ramp begins and ends between dimensions: numbers of transformers' own function.
TEST(RopeTableTest, YarnThatDoesNotTruncateIsThePublishedOne) {
  model::RopeConfig config;
  config.dims = 64;
  config.theta = 150000;
  config.scaling = model::RopeScaling::kYarn;
  config.factor = 32;
  config.original_max_positions = 4096;
  config.truncate = false;
  const std::vector<float> found = RopeTable(config).inverse_frequencies();
  for (const auto& [i, expected] : {std::pair<std::size_t, double>{0, 1.0},
                                    {8, 0.05081327259540558},
                                    {9, 0.031705696135759354},
                                    {12, 0.006794959306716919},
                                    {17, 0.00012931869423482567},
                                    {18, 3.830881178146228e-05},
                                    {31, 3.023511396804679e-07}})
    EXPECT_NEAR(found[i] / expected, 1.0, 1e-6) << i;
  config.truncate = true;
  EXPECT_NEAR(RopeTable(config).inverse_frequencies()[17] / 0.0002279478358104825, 1.0, 1e-6);
  float cos[32], sin[32];
  RopeTable(config).angles(0, cos, sin);
  EXPECT_FLOAT_EQ(cos[0], 1.3465735902799727f);
}

TEST(RopeTableTest, EqualScalesCancelInCosAndSin) {
  float cos[32], sin[32];
  RopeTable(yarn()).angles(0, cos, sin);
  EXPECT_FLOAT_EQ(cos[0], 1.0f);
  model::RopeConfig config = yarn();
  config.mscale = config.mscale_all_dim = 0;
  RopeTable(config).angles(0, cos, sin);
  EXPECT_FLOAT_EQ(cos[0], static_cast<float>(0.1 * std::log(40.0) + 1));
}

TEST(RopeTableTest, ScaleOfTheScores) {
  EXPECT_DOUBLE_EQ(yarn_mscale(1.0, 0.707), 1.0);
  EXPECT_DOUBLE_EQ(yarn_mscale(40, 0.707), 0.1 * 0.707 * std::log(40.0) + 1);
}

}  // namespace
}  // namespace sluice::engine
