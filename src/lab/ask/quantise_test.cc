#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lab/ask/test_ask.h"

namespace sluice::lab {
namespace {

using testing::HasSubstr;

// Vectors of SPEC 7.4.
TEST(Quantise, AnswersTheVectors) {
  const Json exact = ask(
      "quantise",
      Json::parse(R"({"w":[-1,-0.5,0,0.25,0.5,0.75,0.875,0.9921875],"high":8,"low":4,"fp16_scale":true})"));
  EXPECT_EQ(exact, Json::parse(R"({"scale":0.0078125,"z":128,"z_low":8,
      "q":[0,64,128,160,192,224,240,255],"msb":[0,4,8,10,12,14,15,15],"lsb":[0,0,0,0,0,0,0,15],
      "deq_high":[-1.0,-0.5,0.0,0.25,0.5,0.75,0.875,0.9921875],
      "deq_low":[-1.0,-0.5,0.0,0.25,0.5,0.75,0.875,0.875]})"));
  const Json six =
      ask("quantise",
          {{"w", {-.5, -.25, -.1, 0, .05, .1, .3, .6}}, {"high", 6}, {"low", 3}, {"fp16_scale", false}});
  EXPECT_EQ(six["z"], 29);
  EXPECT_EQ(six["z_low"], 3);
  EXPECT_EQ(six["q"], (Json{0, 15, 23, 29, 32, 35, 46, 63}));
  EXPECT_EQ(six["msb"], (Json{0, 1, 2, 3, 4, 4, 5, 7}));
  EXPECT_DOUBLE_EQ(six["scale"].get<double>(), 1.1 / 63);
}

TEST(Quantise, NoWeightsAreNoError) {
  const Json none = ask("quantise", {{"w", Json::array()}, {"high", 4}, {"low", 4}, {"fp16_scale", true}});
  EXPECT_EQ(none["scale"], 1);
  EXPECT_EQ(none["z"], 0);
  EXPECT_EQ(none["q"], Json::array());
}

TEST(Quantise, BadLinesNameTheField) {
  const Json good = {{"w", {1, 2}}, {"high", 8}, {"low", 4}, {"fp16_scale", true}};
  const auto with = [&](const char* field, Json value) {
    Json line = good;
    line[field] = std::move(value);
    return refusal("quantise", line);
  };
  EXPECT_THAT(with("low", 9), HasSubstr("line 7: low"));
  EXPECT_THAT(with("high", 0), HasSubstr("line 7: high"));
  EXPECT_THAT(with("high", 17), HasSubstr("line 7: high"));
  EXPECT_THAT(with("w", std::vector<int>(33, 1)), HasSubstr("line 7: w"));
  EXPECT_THAT(with("w", {1, "x"}), HasSubstr("line 7: w[1]"));
  EXPECT_THAT(with("fp16_scale", 1), HasSubstr("line 7: fp16_scale"));
}

}  // namespace
}  // namespace sluice::lab
