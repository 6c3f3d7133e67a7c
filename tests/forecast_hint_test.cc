// What a run says where its speed is far from what was predicted.
#include "report/forecast_hint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "engine/read_forecast.h"

namespace sluice::app {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

// A prediction of 100 KiB and 100 tokens a second, a quarter of the bytes in vain.
std::string hint(double kib_per_token, double tok_s) {
  engine::ReadForecast forecast;
  forecast.needed = 75 * 1024;
  forecast.in_vain = 25 * 1024;
  forecast.tok_s = 100;
  Decoded decoded;
  decoded.tokens = 50;
  decoded.bytes_per_token = kib_per_token * 1024;
  decoded.tok_s = tok_s;
  decoded.model = "a.sluice";
  return speed_hint(forecast, decoded);
}

TEST(SpeedHint, SaysNothingWithinAFactorOfTwo) {
  EXPECT_EQ(hint(190, 51), "");
  EXPECT_EQ(hint(60, 199), "");
}

TEST(SpeedHint, BytesExplainASpeedFromAQuarterMoreOn) {
  EXPECT_EQ(hint(190, 40), "decoding was slower than predicted, as more was read than predicted");
  EXPECT_EQ(hint(126, 40), "decoding was slower than predicted, as more was read than predicted");
  EXPECT_EQ(hint(79, 250), "decoding was faster than predicted, as less was read than predicted");
  EXPECT_EQ(hint(0, 250), "decoding was faster than predicted, as less was read than predicted");
}

TEST(SpeedHint, OtherwiseItSaysWhatToMeasureAgain) {
  for (const std::string& text : {hint(124, 40), hint(100, 40), hint(10, 40), hint(140, 20)}) {
    EXPECT_THAT(text, StartsWith("decoding was slower than predicted, which the bytes do not explain"));
    EXPECT_THAT(text, HasSubstr("sluice profile a.sluice"));
  }
  for (const double kib : {81., 100., 300.})
    EXPECT_THAT(hint(kib, 250),
                StartsWith("decoding was faster than predicted, which the bytes do not explain"))
        << kib;
}

// 15 KiB beside nothing: 3 ms more a token are their work only where reads took that long.
TEST(SpeedHint, BytesBesideNoneExplainNoMoreThanTheirTime) {
  engine::ReadForecast forecast;
  forecast.in_vain = 0;
  forecast.tok_s = 1200;
  Decoded decoded{.tokens = 50, .bytes_per_token = 15 * 1024, .tok_s = 260, .model = "a.sluice"};
  decoded.read_s_per_token = 50e-6;
  EXPECT_THAT(speed_hint(forecast, decoded),
              StartsWith("decoding was slower than predicted, which the bytes do not explain"));
  decoded.read_s_per_token = 2e-3;
  EXPECT_EQ(speed_hint(forecast, decoded),
            "decoding was slower than predicted, as more was read than predicted");
}

}  // namespace
}  // namespace sluice::app
