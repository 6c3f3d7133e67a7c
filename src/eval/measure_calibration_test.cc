// The contract from end to end: the bundled model in slices is calibrated on one part of its text, and on
// another part loses as much as was accepted and no more.
#include "eval/measure_calibration.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/error_of.h"
#include "base/setting.h"
#include "engine/engine.h"
#include "engine/plan/calibration.h"
#include "engine/run_report.h"
#include "engine/watch/statistics.h"
#include "eval/bundled_fixture.h"
#include "eval/growing_windows.h"
#include "experts/layer_decider.h"
#include "experts/routing/miss_constraint.h"
#include "model/golden_models.h"
#include "store/pack/testing.h"

namespace sluice::eval {
namespace {

using engine::Calibration;
using engine::CalibrationPoint;
using engine::EngineOptions;
using engine::set_contract;
using engine::Statistics;
using experts::PrecisionMode;
using sluice::testing::error_of;
using store::testing::TempDirectory;
using ::testing::HasSubstr;
using testing::kFable;
using testing::Opened;

TEST(SteppedWindows, CountWhatIsScored) {
  for (std::size_t window = 3; window < 12; ++window) {
    for (std::size_t prompt = 1; prompt + 2 <= window; ++prompt) {
      for (std::size_t tokens = 0; tokens < 40; ++tokens) {
        std::size_t windows = 0, scored = 0;
        for (std::size_t begin = 0; begin < tokens; begin += window) {
          const std::size_t length = std::min(window, tokens - begin);
          const std::size_t here = length > prompt + 1 ? length - prompt - 1 : 0;
          windows += here > 0 ? 1 : 0;
          scored += here;
        }
        const SteppedWindows cut{window, prompt};
        ASSERT_EQ(cut.count(tokens), windows) << tokens << " tokens by " << window << ", " << prompt;
        ASSERT_EQ(cut.scored(tokens), scored) << tokens << " tokens by " << window << ", " << prompt;
      }
    }
  }
}

TEST(LossDifference, IsThatOfTheMeanOfWindows) {
  const std::vector<WindowScore> reference{{10, 20}, {10, 25}, {10, 30}},
      changed{{10, 21}, {10, 27}, {10, 33}};
  const LossDifference loss = difference(changed, reference);
  EXPECT_NEAR(loss.loss, 6.0 / 30, 1e-12);
  EXPECT_NEAR(loss.error, .1 / std::sqrt(3.0), 1e-12);  // means .1, .2, .3: deviation .1
  EXPECT_NEAR(perplexity(reference), std::exp(75.0 / 30), 1e-12);
  EXPECT_EQ(difference(std::span(changed).first(1), std::span(reference).first(1)).error, HUGE_VAL);
}

TEST(PerplexityLoss, IsThatOfTheExponential) {
  const PerplexityLoss loss = of_perplexity({.loss = std::log(3.0), .error = .1});
  EXPECT_NEAR(loss.share, 2, 1e-12);
  EXPECT_NEAR(loss.error, .3, 1e-12);  // a tenth more of three times the perplexity
  const PerplexityLoss small = of_perplexity({.loss = 1e-6, .error = 1e-7});
  EXPECT_NEAR(small.share, 1e-6, 1e-11);
  EXPECT_NEAR(small.error, 1e-7, 1e-12);
}

TEST(SteppedWindows, OfALossAreAtLeastTwo) {
  const SteppedWindows windows{.window = 12, .prompt = 4};
  EXPECT_NO_THROW(check_windows(windows, 18, "…"));  // the second window has 6 tokens: one is scored
  try {
    check_windows(windows, 17, "give more");
    FAIL() << "one window is enough";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kInvalid);
    EXPECT_EQ(with_names(error.where()), "-f");
    EXPECT_EQ(error.expected_text(), "at least 2 windows of 12 tokens");
    EXPECT_EQ(error.found_text(), "17 tokens");
    EXPECT_EQ(error.fix_text(), "give more");
  }
}

class Contract : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    scratch_ = std::make_unique<TempDirectory>();
    testing::pack_fable_in_slices(*scratch_ / "m.sluice");
    exact_ = std::make_unique<Opened>(kFable);
    sliced_ = std::make_unique<Opened>(*scratch_ / "m.sluice");
    tokens_ = testing::fable_tokens(*exact_->checkpoint);
    CalibrateOptions calibrate;
    calibrate.engine = engine_options();
    calibrate.windows = kWindows;
    calibrate.thetas = {.3};
    calibrate.ceilings = {.01, .08};
    calibrate.more_thetas = calibrate.more_ceilings = {};
    calibrate.caches = {.25};
    calibrate.both = {{.3, .08}};
    calibration_ = std::make_unique<Calibration>(
        measure_calibration(*sliced_->checkpoint, sliced_->model, *exact_->checkpoint, exact_->model,
                            std::span(tokens_).first(1024), calibrate));
  }
  static void TearDownTestSuite() {
    sliced_.reset();
    exact_.reset();
    calibration_.reset();
    scratch_.reset();
  }

  static EngineOptions engine_options() { return testing::options_for(kWindows); }

  static constexpr SteppedWindows kWindows{128, 32};
  static std::unique_ptr<TempDirectory> scratch_;
  static std::unique_ptr<Opened> exact_, sliced_;
  static std::vector<tokenizer::TokenId> tokens_;
  static std::unique_ptr<Calibration> calibration_;
};
std::unique_ptr<TempDirectory> Contract::scratch_;
std::unique_ptr<Opened> Contract::exact_, Contract::sliced_;
std::vector<tokenizer::TokenId> Contract::tokens_;
std::unique_ptr<Calibration> Contract::calibration_;

bool go_on(std::size_t) { return true; }

TEST_F(Contract, MeasuresWhatIsChanged) {
  EXPECT_EQ(calibration_->text.scored, 8u * (128 - 32 - 1));
  EXPECT_GT(calibration_->perplexity, 20);
  EXPECT_LT(calibration_->perplexity, 80);
  ASSERT_EQ(calibration_->precision.size(), 2u);
  EXPECT_GT(calibration_->precision[0].amount, .1);
  EXPECT_LT(calibration_->precision[0].amount, .9);
  EXPECT_EQ(calibration_->precision[1].amount, 1);  // low: no LSB outlives a prompt
  EXPECT_GT(calibration_->precision[1].loss, calibration_->precision[0].loss);
  // Half the bits: fewer bytes, and a loss that the text shows.
  EXPECT_GT(calibration_->precision[1].loss, 2 * calibration_->precision[1].error);
  ASSERT_EQ(calibration_->routing.size(), 2u);
  for (const CalibrationPoint& one : calibration_->routing) {
    EXPECT_GT(one.amount, one.ceiling / 2);
    EXPECT_LE(one.amount, one.ceiling + 1e-9);
  }
  EXPECT_LT(calibration_->routing[1].bytes_per_token, calibration_->routing[0].bytes_per_token);
  ASSERT_EQ(calibration_->both.size(), 1u);
  const CalibrationPoint& both = calibration_->both[0];
  EXPECT_EQ(both.precision, PrecisionMode::kDbsc);
  EXPECT_NEAR(both.low, calibration_->precision[0].amount, .1);  // for other experts, in another cache
  EXPECT_GT(both.amount, both.ceiling / 2);
  EXPECT_LE(both.amount, both.ceiling + 1e-9);
  EXPECT_LT(both.bytes_per_token, calibration_->routing[1].bytes_per_token);
}

// 760 tokens each. The tolerance is two standard errors of this measurement and of the calibration.
TEST_F(Contract, IsKeptOnAnotherText) {
  const std::span<const tokenizer::TokenId> text = std::span(tokens_).subspan(20000, 1024);
  std::vector<WindowScore> reference;
  {
    const auto engine = exact_->engine(engine_options());
    reference = score_windows(*engine, text, kWindows, false, go_on);
  }
  double bytes_before = HUGE_VAL;
  for (const double most : {.02, .05, .2}) {
    EngineOptions options = engine_options();
    set_contract(*calibration_, most, "c.json", options);
    const auto any = sliced_->engine(options, 1);
    options.cache_bytes = any->report().expert_memory_bytes() * sliced_->model.experts.size() / 3;
    const auto engine = sliced_->engine(options);
    const LossDifference loss = difference(score_windows(*engine, text, kWindows, true, go_on), reference);
    const PerplexityLoss measured = of_perplexity(loss);
    const experts::LossEstimate estimate = engine->report().loss_guard()->estimate();
    std::printf("accepted %.1f %%: measured %.2f %% +- %.2f, estimated %.2f %%, at most %.2f %%\n",
                100 * most, 100 * measured.share, 100 * measured.error, 100 * std::expm1(estimate.total()),
                100 * std::expm1(estimate.upper));
    EXPECT_LE(estimate.upper, std::log1p(most) + 1e-9);
    const double calibrated = estimate.upper - estimate.total();  // the limit includes one of these errors
    EXPECT_LE(loss.loss, std::log1p(most) + calibrated + 2 * loss.error);
    EXPECT_GT(engine->report().constraint()->replaced(), 0u);
    // The accepted loss is used.
    const Statistics& statistics = engine->statistics();
    const double bytes =
        static_cast<double>(statistics.decode.bytes_read) / static_cast<double>(statistics.decode.tokens);
    EXPECT_LT(bytes, bytes_before);
    bytes_before = bytes;
  }
}

// Guard and statistics count the same.
TEST_F(Contract, GuardAndStatisticsAgree) {
  EngineOptions options = engine_options();
  set_contract(*calibration_, .05, "c.json", options);
  options.cache_bytes = 2 * kMiB;
  const auto engine = sliced_->engine(options);
  score_windows(*engine, std::span(tokens_).subspan(5000, 256), kWindows, true, go_on);
  const Statistics& statistics = engine->statistics();
  const experts::LossGuard& guard = *engine->report().loss_guard();
  const std::uint64_t places = statistics.decode.tokens * sliced_->model.config.sparse_layers();
  const experts::RoutingChanges& routing = engine->report().decider.decode_changes();
  EXPECT_EQ(routing.tokens, places);
  EXPECT_EQ(statistics.low_tokens, places);
  EXPECT_NEAR(guard.mass_lost(), routing.mass_lost / static_cast<double>(places), 1e-12);
  EXPECT_NEAR(guard.low_share(), statistics.low_share / static_cast<double>(places), 1e-12);
}

TEST_F(Contract, WhereAllFitsNothingIsChanged) {
  EngineOptions options = engine_options(), high = engine_options();
  set_contract(*calibration_, .2, "c.json", options);
  high.precision = PrecisionMode::kHigh;
  const auto nll = [&](const EngineOptions& settings) {
    const auto engine = sliced_->engine(settings);
    return score_windows(*engine, std::span(tokens_).first(128), kWindows, true, go_on)[0].nll;
  };
  EXPECT_EQ(nll(options), nll(high));
}

TEST_F(Contract, ReferenceMustBeTheModelItself) {
  const auto error = [&](const Opened& store, const Opened& reference, std::size_t tokens) {
    CalibrateOptions options{.engine = engine_options(), .windows = kWindows};
    return error_of([&] {
      measure_calibration(*store.checkpoint, store.model, *reference.checkpoint, reference.model,
                          std::span(tokens_).first(tokens), options);
    });
  };
  EXPECT_THAT(error(*exact_, *exact_, 512), HasSubstr("only a store in slices has losses to calibrate"));
  EXPECT_THAT(error(*sliced_, *sliced_, 512), HasSubstr("the reference is itself rounded"));
  EXPECT_THAT(error(*sliced_, *exact_, 140), HasSubstr("at least 2 windows of 128 tokens"));
  const Opened other(sluice::testing::kGoldenModels + "/qwen2_moe_b");
  EXPECT_THAT(error(*sliced_, other, 512), HasSubstr("the reference has another vocabulary"));
}

TEST_F(Contract, StopsWhenAsked) {
  CalibrateOptions options{.engine = engine_options(), .windows = kWindows};
  options.on_progress = [](std::size_t done, std::size_t all) { return done * 10 < all; };
  EXPECT_THAT(error_of([&] {
                measure_calibration(*sliced_->checkpoint, sliced_->model, *exact_->checkpoint, exact_->model,
                                    std::span(tokens_).first(256), options);
              }),
              HasSubstr("interrupted"));
}

class Growing : public Contract {
 protected:
  // A grid of three points on four windows.
  static CalibrateOptions options() {
    CalibrateOptions options{.engine = engine_options(), .windows = kWindows};
    options.thetas = {.3};
    options.ceilings = {.01};
    options.more_thetas = options.more_ceilings = {};
    options.caches = {.25};
    options.both = {};
    return options;
  }
  static Json measure(const CalibrateOptions& options, std::size_t begin = 0) {
    return to_json(measure_calibration(*sliced_->checkpoint, sliced_->model, *exact_->checkpoint,
                                       exact_->model, std::span(tokens_).subspan(begin, kTokens), options));
  }
  static constexpr std::size_t kTokens = 512;
};

TEST_F(Growing, GoesOnWhereItWasInterrupted) {
  const Json at_once = measure(options());
  CalibrateOptions kept = options();
  kept.state = *scratch_ / "calibrate.state";
  const std::size_t finished = 3;  // three of four windows
  kept.on_progress = [&](std::size_t done, std::size_t) { return done < finished * kWindows.window + 50; };
  EXPECT_THAT(error_of([&] { measure(kept); }), HasSubstr("interrupted"));
  std::size_t first = 0, last = 0;
  kept.on_progress = [&](std::size_t done, std::size_t all) {
    if (last == 0) first = done;
    last = done;
    EXPECT_EQ(all, kTokens);
    return true;
  };
  EXPECT_EQ(measure(kept), at_once);
  EXPECT_EQ(first / kWindows.window, finished);
  EXPECT_EQ(last, kTokens);
  last = 0;
  EXPECT_EQ(measure(kept), at_once);  // everything is in the state
  EXPECT_EQ(last, 0u);
  // A state of any other evaluation.
  EXPECT_THAT(error_of([&] { measure(kept, 1); }), HasSubstr("data"));
  kept.both = {{.3, .01}};
  EXPECT_THAT(error_of([&] { measure(kept); }), HasSubstr("grid"));
}

TEST_F(Growing, EndsWithItsTime) {
  CalibrateOptions late = options();
  late.hours = 0;
  EXPECT_THAT(error_of([&] { measure(late); }), HasSubstr("the time is too short"));
  late.state = *scratch_ / "late.state";
  late.hours.reset();
  late.on_progress = [&](std::size_t done, std::size_t) { return done < 3 * kWindows.window + 50; };
  EXPECT_THAT(error_of([&] { measure(late); }), HasSubstr("interrupted"));
  // What the state has takes no time: three windows, though the exact model has computed four.
  late.hours = 0;
  const Json three = measure(late);
  EXPECT_EQ(three.at("text").at("windows"), 3);
  EXPECT_EQ(three.at("text").at("tokens"), 3 * kWindows.window);
  EXPECT_EQ(three.at("precision").at(0).at("windows"), 3);
  late.hours = 1;
  late.on_progress = {};
  EXPECT_EQ(measure(late), measure(options()));
}

// What loses much is soon known to a tenth; the text goes on for what is not.
TEST_F(Growing, ComputesNoFurtherWhatIsKnown) {
  CalibrateOptions grown = options();
  grown.windows = {.window = 32, .prompt = 8};
  grown.engine = testing::options_for(grown.windows);
  grown.ceilings = {};
  const Calibration calibration =
      measure_calibration(*sliced_->checkpoint, sliced_->model, *exact_->checkpoint, exact_->model,
                          std::span(tokens_).first(5120), grown);
  const CalibrationPoint &theta = calibration.precision.at(0), &low = calibration.precision.at(1);
  EXPECT_EQ(calibration.text.windows, 160u);
  EXPECT_EQ(theta.windows, 160u);
  EXPECT_EQ(low.windows, 135u);  // the first look at 3000 scored tokens
  EXPECT_FALSE(is_known({theta.loss, theta.error}));
  EXPECT_TRUE(is_known({low.loss, low.error}));
}

// Between .2 and low the loss grows by more than a line could be trusted with; below .2 hardly.
TEST_F(Growing, BeginsWhatTheCurveNeeds) {
  CalibrateOptions grown = options();
  grown.thetas = {.2};
  grown.more_thetas = {.1, .5};
  grown.ceilings = {};
  const Calibration calibration =
      measure_calibration(*sliced_->checkpoint, sliced_->model, *exact_->checkpoint, exact_->model,
                          std::span(tokens_).first(8 * kWindows.window), grown);
  ASSERT_EQ(calibration.precision.size(), 3u);
  EXPECT_EQ(calibration.precision[0].theta, .2);
  EXPECT_EQ(calibration.precision[0].windows, 8u);
  EXPECT_EQ(calibration.precision[1].theta, .5);
  EXPECT_EQ(calibration.precision[1].windows, 4u);  // from the first look on
  EXPECT_EQ(calibration.precision[2].precision, PrecisionMode::kLow);
}

TEST(GrowingWindows, LookAgainAfterHalfAsManyMore) {
  EXPECT_EQ(next_look(0), 4u);
  EXPECT_EQ(next_look(8), 12u);
  EXPECT_EQ(next_look(90), 135u);
}

TEST(GrowingWindows, KnowALossToATenth) {
  EXPECT_TRUE(is_known({.loss = .5, .error = .049}));
  EXPECT_FALSE(is_known({.loss = .5, .error = .051}));
  EXPECT_TRUE(is_known({.loss = -.01, .error = .002}));  // noise
  EXPECT_FALSE(is_known({.loss = .01, .error = .0021}));
}

}  // namespace
}  // namespace sluice::eval
