#include "engine/plan/calibration.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/error_of.h"

namespace sluice::engine {
namespace {

using experts::PrecisionMode;
using sluice::testing::error_of;
using ::testing::HasSubstr;

CalibrationPoint point(PrecisionMode precision, double theta, double amount, double loss, double error) {
  return {.precision = precision,
          .theta = theta,
          .cache = .25,
          .amount = amount,
          .perplexity = 40 * std::exp(loss),
          .loss = loss,
          .error = error,
          .bytes_per_token = 12345.5};
}

Calibration made_up() {
  Calibration calibration{.text = {.sha256 = std::string(64, 'a'),
                                   .tokens = 1000,
                                   .scored = 700,
                                   .windows = 4,
                                   .window = 256,
                                   .prompt = 64},
                          .activations = kernels::ActivationForm::kInt8,
                          .reference = "0123456789abcdef",
                          .perplexity = 40};
  calibration.high = point(PrecisionMode::kHigh, 0, 0, .001, .001);
  calibration.precision = {point(PrecisionMode::kDbsc, .2, .25, .002, .001),
                           point(PrecisionMode::kDbsc, .4, .5, .006, .001),
                           point(PrecisionMode::kLow, 0, 1, .03, .002)};
  calibration.routing = {point(PrecisionMode::kHigh, 0, .01, .004, .001),
                         point(PrecisionMode::kHigh, 0, .1, .05, .004)};
  calibration.routing[0].ceiling = .01;
  calibration.routing[1].ceiling = .1;
  calibration.both = {point(PrecisionMode::kDbsc, .4, .1, .08, .004)};
  calibration.both[0].ceiling = .1;
  calibration.both[0].low = .5;
  return calibration;
}

TEST(Calibration, SurvivesItsJson) {
  const Json json = to_json(made_up());
  EXPECT_EQ(to_json(calibration_from_json(json, "c.json")), json);
}

TEST(Calibration, RefusesDamage) {
  const Json whole = to_json(made_up());
  const auto refused = [&](const std::function<void(Json&)>& damage) {
    Json json = whole;
    damage(json);
    return error_of([&] { calibration_from_json(json, "c.json"); });
  };
  for (const auto& [field, json] : whole.items())
    EXPECT_THAT(refused([&, field = field](Json& damaged) { damaged.erase(field); }),
                AllOf(HasSubstr("c.json"), HasSubstr(field)));
  EXPECT_THAT(refused([](Json& json) { json["version"] = 2; }), HasSubstr("version"));
  EXPECT_THAT(refused([](Json& json) { json["both"][0]["low_share"] = 2; }), HasSubstr("both[0]: low_share"));
  EXPECT_THAT(refused([](Json& json) { json["precision"][1]["amount"] = 1.5; }),
              HasSubstr("precision[1]: amount"));
  EXPECT_THAT(refused([](Json& json) { json["precision"][1].erase("theta"); }), HasSubstr("theta"));
  EXPECT_THAT(refused([](Json& json) { json["routing"][0]["error"] = -1; }), HasSubstr("error"));
  EXPECT_THAT(refused([](Json& json) { json["high"]["precision"] = "full"; }), HasSubstr("precision"));
  EXPECT_THAT(refused([](Json& json) { json["activations"] = "fp16"; }), HasSubstr("activations"));
  EXPECT_THAT(refused([](Json& json) { json["routing"] = 5; }), HasSubstr("routing"));
}

// The curves lose .006 and .05 there, with their errors .007 and .054.
TEST(Calibration, WhatBothLoseTogetherIsFitted) {
  Calibration calibration = made_up();
  EXPECT_NEAR(calibration.model().both, .024 / (.006 * .05), 1e-9);
  EXPECT_NEAR(calibration.model().both_upper, .024 / (.006 * .05), 1e-9);  // .023 / (.007 · .054) is less
  calibration.both[0].error = .02;
  EXPECT_NEAR(calibration.model().both_upper, .039 / (.007 * .054), 1e-9);
  // A point beyond the curves is ignored; a point that loses less than the sum counts, with an excess of 0.
  calibration.both.push_back(point(PrecisionMode::kDbsc, .4, .2, 1, 0));
  calibration.both.back().low = .5;
  EXPECT_NEAR(calibration.model().both, .024 / (.006 * .05), 1e-9);
  calibration.both.push_back(point(PrecisionMode::kDbsc, .2, .01, .0, 0));
  calibration.both.back().low = .25;
  const double x = .006 * .05, y = .002 * .004;
  EXPECT_NEAR(calibration.model().both, (.024 * x - .006 * y) / (x * x + y * y), 1e-9);
  calibration.both[0].loss = .04;
  EXPECT_EQ(calibration.model().both, 0);
  calibration.both.clear();
  EXPECT_EQ(calibration.model().both_upper, 0);
}

TEST(Calibration, ChoosesTheLargestThetaThatLeavesRoom) {
  const auto chosen = [](double most) {
    EngineOptions options;
    set_contract(made_up(), most, "c.json", options);
    EXPECT_EQ(options.router.name(), "cache-prior");
    EXPECT_EQ(options.constraint, experts::ConstraintMode::kHard);
    EXPECT_EQ(options.slices.rules.lsb_miss, experts::LsbMiss::kFetch);
    EXPECT_NEAR(options.contract->limit, std::log1p(most), 1e-15);
    return options;
  };
  EXPECT_EQ(chosen(.003).precision, PrecisionMode::kHigh);
  EXPECT_EQ(chosen(.003).contract->planned_low, 0);
  EXPECT_EQ(chosen(.01).precision, PrecisionMode::kDbsc);
  EXPECT_EQ(chosen(.01).critical.theta, .2);
  EXPECT_EQ(chosen(.03).critical.theta, .4);
  EXPECT_EQ(chosen(.03).contract->planned_low, .5);
  EXPECT_EQ(chosen(.1).precision, PrecisionMode::kLow);
  EXPECT_THAT(error_of([&] { chosen(.001); }),
              AllOf(HasSubstr("--max-loss"), HasSubstr("at least 0.2 %"), HasSubstr("0.1 %")));
}

// The router that a user names spends the same limit.
TEST(Calibration, LeavesRoutingToSmoe) {
  EngineOptions options;
  options.router = "smoe";
  options.smoe.alpha = .5;
  set_contract(made_up(), .03, "c.json", options);
  EXPECT_EQ(options.router.name(), "smoe");
  EXPECT_EQ(options.smoe.alpha, .5);
  EXPECT_EQ(options.constraint, experts::ConstraintMode::kNone);
  EXPECT_EQ(options.critical.theta, .4);
  EXPECT_NEAR(options.contract->limit, std::log1p(.03), 1e-15);
}

TEST(Calibration, HoldsForTheActivationsItWasMeasuredWith) {
  using kernels::ActivationForm;
  EngineOptions options;
  set_contract(made_up(), .01, "c.json", options);
  EXPECT_EQ(options.activations, ActivationForm::kInt8);
  options.activations = ActivationForm::kF32;
  EXPECT_THAT(error_of([&] { set_contract(made_up(), .01, "c.json", options); }),
              AllOf(HasSubstr("--activations"), HasSubstr("int8, as c.json"), HasSubstr("fp32")));
  EngineOptions exact;
  exact.math = Math::kF32;
  EXPECT_THAT(error_of([&] { set_contract(made_up(), .01, "c.json", exact); }),
              AllOf(HasSubstr("--math"), HasSubstr("int8, as c.json")));
  Calibration plain = made_up();
  plain.activations = ActivationForm::kF32;
  set_contract(plain, .01, "c.json", exact);
  EXPECT_EQ(exact.activations, ActivationForm::kF32);
  EngineOptions coded;
  coded.activations = ActivationForm::kInt8;
  EXPECT_THAT(error_of([&] { set_contract(plain, .01, "c.json", coded); }), HasSubstr("fp32, as c.json"));
}

}  // namespace
}  // namespace sluice::engine
