#include "engine/plan/smoe_calibration.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <random>
#include <string>

#include "base/error.h"
#include "base/error_of.h"

namespace sluice::engine {
namespace {

using sluice::testing::error_of;
using ::testing::AllOf;
using ::testing::HasSubstr;

SmoePoint measured(double alpha, double cache, double amount, double loss, double error) {
  return {.alpha = alpha,
          .cache = cache,
          .amount = amount,
          .perplexity = 40 * std::exp(loss),
          .loss = loss,
          .error = error,
          .bytes_per_token = 54321.5};
}

SmoeCalibration measured_curve() {
  return {.text = {.sha256 = std::string(64, 'b'),
                   .tokens = 1000,
                   .scored = 700,
                   .windows = 4,
                   .window = 256,
                   .prompt = 64},
          .perplexity = 40,
          .points = {measured(0, .25, 0, 0, 0), measured(.1, .25, .004, .001, .001),
                     measured(.25, .25, .012, .005, .002), measured(.6, .25, .05, .03, .004),
                     measured(0, .5, 0, 0, 0), measured(.1, .5, .003, .0005, .001),
                     measured(.25, .5, .01, .007, .002), measured(.6, .5, .04, .02, .004)}};
}

TEST(SmoeCalibration, SurvivesItsJson) {
  const Json json = to_json(measured_curve());
  EXPECT_EQ(to_json(smoe_calibration_from_json(json, "c.json")), json);
}

TEST(SmoeCalibration, RefusesDamage) {
  const Json whole = to_json(measured_curve());
  const auto refused = [&](const std::function<void(Json&)>& damage) {
    Json json = whole;
    damage(json);
    return error_of([&] { smoe_calibration_from_json(json, "c.json"); });
  };
  for (const auto& [field, json] : whole.items())
    EXPECT_THAT(refused([&, field = field](Json& damaged) { damaged.erase(field); }),
                AllOf(HasSubstr("c.json"), HasSubstr(field)));
  for (const auto& [field, json] : whole["points"][3].items())
    EXPECT_THAT(refused([&, field = field](Json& damaged) { damaged["points"][3].erase(field); }),
                AllOf(HasSubstr("c.json: points[3]"), HasSubstr(field)));
  for (const auto& [field, json] : whole["text"].items())
    EXPECT_THAT(refused([&, field = field](Json& damaged) { damaged["text"].erase(field); }),
                HasSubstr(field));
  EXPECT_THAT(refused([](Json& json) { json["version"] = 2; }), HasSubstr("version"));
  EXPECT_THAT(refused([](Json& json) { json["points"] = Json::array(); }), HasSubstr("points"));
  EXPECT_THAT(refused([](Json& json) { json["points"][1]["alpha"] = -1; }), HasSubstr("alpha"));
  EXPECT_THAT(refused([](Json& json) { json["points"][1]["amount"] = 2; }), HasSubstr("amount"));
  EXPECT_THAT(refused([](Json& json) { json["points"][1]["error"] = -1; }), HasSubstr("error"));
}

// An alpha is allowed if it and every smaller one keep to the limit in every cache, one error included.
TEST(SmoeCalibration, ChoosesTheLargestAlphaThatEveryCacheAllows) {
  constexpr std::uint64_t kSeed = 20251126;
  std::mt19937_64 random(kSeed);
  std::uniform_real_distribution<double> loss(-.002, .03), error(0, .004), limit(0, .04);
  int chosen = 0, none = 0;
  for (int round = 0; round < 2000; ++round) {
    SmoeCalibration calibration;
    const double alphas[] = {0, .1, .25, .35, .6};
    for (const double cache : {.25, .5, .75})
      for (const double alpha : alphas)
        calibration.points.push_back(
            alpha == 0 ? measured(0, cache, 0, 0, 0)
                       : measured(alpha, cache, alpha / 10, alpha * loss(random), error(random)));
    std::ranges::shuffle(calibration.points, random);
    const double most = limit(random) / 4;
    double expected = 0;
    for (const double alpha : alphas) {
      const bool kept = std::ranges::all_of(calibration.points, [&](const SmoePoint& point) {
        return point.alpha != alpha || point.loss + point.error <= most;
      });
      if (!kept) break;
      expected = alpha;
    }
    ASSERT_EQ(calibration.largest_alpha(most), expected) << "seed " << kSeed << ", round " << round;
    chosen += expected > 0 ? 1 : 0;
    none += expected == 0 ? 1 : 0;
  }
  EXPECT_GT(chosen, 200);
  EXPECT_GT(none, 200);
}

TEST(SmoeCalibration, TheContractHoldsTheChosenAlphaAndTheCurve) {
  const auto chosen = [](double most) {
    EngineOptions options;
    set_contract(measured_curve(), most, options);
    EXPECT_EQ(options.router.name(), "smoe");
    EXPECT_NEAR(options.contract->limit, std::log1p(most), 1e-15);
    EXPECT_TRUE(options.routing_losses.has_value());
    EXPECT_EQ(options.precision, experts::PrecisionMode::kFull);
    EXPECT_FALSE(options.constraint.has_value());
    return options;
  };
  EXPECT_EQ(chosen(.0001).smoe.alpha, 0);
  EXPECT_EQ(chosen(.003).smoe.alpha, .1);
  EXPECT_EQ(chosen(.008).smoe.alpha, .1);  // .25 loses .009 with half of the experts in memory
  EXPECT_EQ(chosen(.01).smoe.alpha, .25);
  EXPECT_EQ(chosen(.05).smoe.alpha, .6);
  const experts::LossModel model = chosen(.01).contract->model;
  EXPECT_EQ(model.high_upper, 0);
  EXPECT_EQ(model.both_upper, 0);
  EXPECT_NEAR(model.routing.at(.01), .006, 1e-12);  // .007, then .005 beyond it: neither falls
  EXPECT_NEAR(model.routing_upper.at(.04), .024, 1e-12);
  EXPECT_TRUE(std::isinf(model.routing.at(.06)));
}

TEST(SmoeCalibration, ACacheOf8BitsWasNotMeasured) {
  EngineOptions options;
  options.kv = DType::kI8;
  EXPECT_THAT(error_of([&] { set_contract(measured_curve(), .01, options); }),
              AllOf(HasSubstr("--max-loss"), HasSubstr("--kv int8")));
}

TEST(SmoeCalibration, ActivationsInCodesWereNotMeasured) {
  EngineOptions options;
  options.activations = kernels::ActivationForm::kInt8;
  EXPECT_THAT(error_of([&] { set_contract(measured_curve(), .01, options); }),
              AllOf(HasSubstr("--max-loss"), HasSubstr("--activations fp32")));
  options.activations = kernels::ActivationForm::kF32;
  EXPECT_NO_THROW(set_contract(measured_curve(), .01, options));
}

}  // namespace
}  // namespace sluice::engine
