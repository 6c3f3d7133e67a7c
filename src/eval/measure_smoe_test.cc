// What SMoE's router costs, from end to end: measured on one part of the bundled model's text, and kept to on
// another with caches that were not measured.
#include "eval/measure_smoe.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/error_of.h"
#include "base/files/scratch_directory.h"
#include "engine/engine.h"
#include "engine/run_report.h"
#include "engine/watch/statistics.h"
#include "eval/bundled_fixture.h"
#include "experts/layer_decider.h"

namespace sluice::eval {
namespace {

using engine::EngineOptions;
using engine::SmoeCalibration;
using engine::SmoePoint;
using sluice::testing::error_of;
using ::testing::HasSubstr;

class SmoeLoss : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    opened_.emplace(testing::kFable);
    tokens_ = testing::fable_tokens(*opened_->checkpoint);
  }
  static void TearDownTestSuite() {
    calibration_.reset();
    opened_.reset();
  }

  static EngineOptions engine_options() { return testing::options_for(kWindows); }
  static MeasureSmoeOptions measure_options() {
    MeasureSmoeOptions options;
    options.engine = engine_options();
    options.windows = kWindows;
    return options;
  }
  // Measured once for all tests.
  static const SmoeCalibration& calibration() {
    if (!calibration_) {
      MeasureSmoeOptions options = measure_options();
      options.alphas = {0, .25, .6, 1};
      calibration_ =
          measure_smoe(*opened_->checkpoint, opened_->model, std::span(tokens_).first(kTokens), options);
    }
    return *calibration_;
  }
  static bool go_on(std::size_t) { return true; }

  static constexpr SteppedWindows kWindows{128, 32};
  static constexpr std::size_t kTokens = 1024;
  static inline std::optional<testing::Opened> opened_;
  static inline std::vector<tokenizer::TokenId> tokens_;
  static inline std::optional<SmoeCalibration> calibration_;
};

TEST_F(SmoeLoss, GrowsWithAlphaAndBuysBytes) {
  const SmoeCalibration& measured = calibration();
  EXPECT_EQ(measured.text.scored, 8u * (128 - 32 - 1));
  EXPECT_GT(measured.perplexity, 20);
  EXPECT_LT(measured.perplexity, 80);
  ASSERT_EQ(measured.points.size(), 8u);
  for (const std::size_t cache : {0u, 4u}) {
    const SmoePoint* const points = measured.points.data() + cache;
    EXPECT_EQ(points[0].alpha, 0);
    EXPECT_EQ(points[0].amount, 0);
    EXPECT_EQ(points[0].loss, 0);  // the bits of exact, in either cache
    EXPECT_EQ(points[0].error, 0);
    for (const std::size_t i : {1u, 2u, 3u}) {
      EXPECT_GT(points[i].amount, points[i - 1].amount);
      EXPECT_LT(points[i].bytes_per_token, points[i - 1].bytes_per_token);
      EXPECT_GT(points[i].error, 0);
      EXPECT_NEAR(points[i].loss, std::log(points[i].perplexity / measured.perplexity), 1e-9);
    }
    EXPECT_GT(points[3].loss, 2 * points[3].error);  // alpha 1 is lossy beyond doubt
  }
  // Twice the memory: fewer bytes.
  EXPECT_LT(measured.points[4].bytes_per_token, measured.points[0].bytes_per_token);
}

// The tolerance is two standard errors of this measurement and one of the calibration, as for slices.
TEST_F(SmoeLoss, ContractsAreKeptOnAnotherTextInThreeBudgets) {
  const std::span<const tokenizer::TokenId> text = std::span(tokens_).subspan(20000, kTokens);
  const auto exact = opened_->engine(engine_options());
  const Bytes all = exact->report().expert_memory_bytes() * opened_->model.experts.size();
  const std::vector<WindowScore> reference = score_windows(*exact, text, kWindows, true, go_on);
  std::uint64_t replaced = 0;
  for (const double most : {.01, .03}) {
    for (const Bytes part : {5, 3, 2}) {
      EngineOptions options = engine_options();
      options.prefetch = "none";
      options.cache_bytes = all / part;
      set_contract(calibration(), most, options);
      const auto engine = opened_->engine(options);
      const LossDifference loss = difference(score_windows(*engine, text, kWindows, true, go_on), reference);
      const PerplexityLoss measured = of_perplexity(loss);
      const experts::LossEstimate estimate = engine->report().loss_guard()->estimate();
      const experts::RoutingChanges& routing = engine->report().decider.decode_changes();
      std::printf(
          "accepted %.0f %%, 1/%d in memory, alpha %.2f: measured %.2f %% +- %.2f, estimated %.2f %%, "
          "at most %.2f %%\n",
          100 * most, static_cast<int>(part), options.smoe.alpha, 100 * measured.share, 100 * measured.error,
          100 * std::expm1(estimate.total()), 100 * std::expm1(estimate.upper));
      EXPECT_LE(estimate.upper, std::log1p(most) + 1e-9);
      EXPECT_LE(loss.loss, std::log1p(most) + (estimate.upper - estimate.total()) + 2 * loss.error);
      EXPECT_NEAR(engine->report().loss_guard()->mass_lost(),
                  routing.mass_lost / static_cast<double>(routing.tokens), 1e-12);
      replaced += routing.substituted;
    }
  }
  EXPECT_GT(replaced, 0u);  // the accepted loss is used
}

TEST_F(SmoeLoss, WhereAllFitsNothingIsChanged) {
  EngineOptions exact = engine_options(), limited = engine_options();
  set_contract(calibration(), .5, limited);
  EXPECT_GT(limited.smoe.alpha, 0);
  const auto nll = [&](const EngineOptions& options) {
    return score_windows(*opened_->engine(options), std::span(tokens_).first(128), kWindows, true, go_on)[0]
        .nll;
  };
  EXPECT_EQ(nll(limited), nll(exact));
}

TEST_F(SmoeLoss, GoesOnWhereItWasInterrupted) {
  constexpr std::size_t kFew = 256;
  const sluice::testing::ScratchDirectory directory;
  MeasureSmoeOptions options = measure_options();
  options.alphas = {0, .35};
  options.caches = {.25};
  const auto measure = [&](std::size_t begin) {
    return to_json(
        measure_smoe(*opened_->checkpoint, opened_->model, std::span(tokens_).subspan(begin, kFew), options));
  };
  const Json at_once = measure(0);
  options.state = directory.file("smoe.state");
  options.on_progress = [&](std::size_t done, std::size_t) { return done < kWindows.window + 50; };
  EXPECT_THAT(error_of([&] { measure(0); }), HasSubstr("interrupted"));
  std::size_t first = 0, last = 0;
  options.on_progress = [&](std::size_t done, std::size_t all) {
    if (last == 0) first = done;
    last = done;
    EXPECT_EQ(all, kFew);
    return true;
  };
  EXPECT_EQ(measure(0), at_once);
  EXPECT_EQ(first / kWindows.window, 1u);
  EXPECT_EQ(last, kFew);
  EXPECT_THAT(error_of([&] { measure(1); }), HasSubstr("data"));
  options.alphas = {0, .3};
  EXPECT_THAT(error_of([&] { measure(0); }), HasSubstr("grid"));
}

TEST_F(SmoeLoss, NeedsTwoWindows) {
  EXPECT_THAT(error_of([&] {
                measure_smoe(*opened_->checkpoint, opened_->model, std::span(tokens_).first(140),
                             measure_options());
              }),
              HasSubstr("at least 2 windows of 128 tokens"));
}

}  // namespace
}  // namespace sluice::eval
