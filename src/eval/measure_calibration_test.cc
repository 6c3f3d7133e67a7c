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
#include "engine/plan/engine_plan.h"
#include "engine/run_report.h"
#include "engine/watch/statistics.h"
#include "eval/bundled_fixture.h"
#include "experts/layer_decider.h"
#include "experts/routing/miss_constraint.h"
#include "model/architecture.h"
#include "model/golden_models.h"
#include "model/pack_plan.h"
#include "store/pack/testing.h"
#include "store/source/open_checkpoint.h"

namespace sluice::eval {
namespace {

using engine::Calibration;
using engine::CalibrationPoint;
using engine::Engine;
using engine::EngineOptions;
using engine::set_contract;
using engine::Statistics;
using experts::PrecisionMode;
using sluice::testing::error_of;
using store::testing::TempDirectory;
using ::testing::HasSubstr;
using testing::kFable;

struct Opened {
  explicit Opened(const std::string& path)
      : checkpoint(store::open_checkpoint(path)), model(model::describe_model(*checkpoint)) {}
  std::unique_ptr<store::Checkpoint> checkpoint;
  model::Model model;
};

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
    store::PackOptions options;
    options.slices = codec::SliceBits{4, 2};
    store::pack(kFable, *scratch_ / "m.sluice", model::pack_plan(*store::open_checkpoint(kFable)), options);
    exact_ = std::make_unique<Opened>(kFable);
    sliced_ = std::make_unique<Opened>(*scratch_ / "m.sluice");
    tokens_ = testing::fable_tokens(*exact_->checkpoint);
    CalibrateOptions calibrate;
    calibrate.engine = engine_options();
    calibrate.windows = kWindows;
    calibrate.thetas = {.3};
    calibrate.ceilings = {.01, .08};
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
  EXPECT_NEAR(both.low, calibration_->precision[0].amount, .1);  // of other experts, in another cache
  EXPECT_GT(both.amount, both.ceiling / 2);
  EXPECT_LE(both.amount, both.ceiling + 1e-9);
  EXPECT_LT(both.bytes_per_token, calibration_->routing[1].bytes_per_token);
}

// 760 tokens each. The tolerance is two standard errors of this measurement and of the calibration.
TEST_F(Contract, IsKeptOnAnotherText) {
  const std::span<const tokenizer::TokenId> text = std::span(tokens_).subspan(20000, 1024);
  std::vector<WindowScore> reference;
  {
    Engine engine(*exact_->checkpoint, exact_->model,
                  engine::resolve(engine_options(), *exact_->checkpoint, exact_->model), 32);
    reference = score_windows(engine, text, kWindows, false, go_on);
  }
  double bytes_before = HUGE_VAL;
  for (const double most : {.02, .05, .2}) {
    EngineOptions options = engine_options();
    set_contract(*calibration_, most, "c.json", options);
    Engine any(*sliced_->checkpoint, sliced_->model,
               engine::resolve(options, *sliced_->checkpoint, sliced_->model));
    options.cache_bytes = any.report().expert_memory_bytes() * sliced_->model.experts.size() / 3;
    Engine engine(*sliced_->checkpoint, sliced_->model,
                  engine::resolve(options, *sliced_->checkpoint, sliced_->model), 32);
    const LossDifference loss = difference(score_windows(engine, text, kWindows, true, go_on), reference);
    const PerplexityLoss measured = of_perplexity(loss);
    const experts::LossEstimate estimate = engine.report().loss_guard()->estimate();
    std::printf("accepted %.1f %%: measured %.2f %% +- %.2f, estimated %.2f %%, at most %.2f %%\n",
                100 * most, 100 * measured.share, 100 * measured.error, 100 * std::expm1(estimate.total()),
                100 * std::expm1(estimate.upper));
    EXPECT_LE(estimate.upper, std::log1p(most) + 1e-9);
    const double calibrated = estimate.upper - estimate.total();  // the limit includes one of these errors
    EXPECT_LE(loss.loss, std::log1p(most) + calibrated + 2 * loss.error);
    EXPECT_GT(engine.report().constraint()->replaced(), 0u);
    // The accepted loss is used.
    const Statistics& statistics = engine.statistics();
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
  Engine engine(*sliced_->checkpoint, sliced_->model,
                engine::resolve(options, *sliced_->checkpoint, sliced_->model), 32);
  score_windows(engine, std::span(tokens_).subspan(5000, 256), kWindows, true, go_on);
  const Statistics& statistics = engine.statistics();
  const experts::LossGuard& guard = *engine.report().loss_guard();
  const std::uint64_t places = statistics.decode.tokens * sliced_->model.config.sparse_layers();
  const experts::RoutingChanges& routing = engine.report().decider.decode_changes();
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
    Engine engine(*sliced_->checkpoint, sliced_->model,
                  engine::resolve(settings, *sliced_->checkpoint, sliced_->model), 32);
    return score_windows(engine, std::span(tokens_).first(128), kWindows, true, go_on)[0].nll;
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

TEST_F(Contract, GoesOnWhereItWasInterrupted) {
  constexpr std::size_t kTokens = 256;
  CalibrateOptions options{.engine = engine_options(), .windows = kWindows};
  options.thetas = {.3};
  options.ceilings = {.01};
  options.caches = {.25};
  options.both = {};
  const auto measure = [&](const Opened& store, std::size_t begin) {
    return to_json(measure_calibration(*store.checkpoint, store.model, *exact_->checkpoint, exact_->model,
                                       std::span(tokens_).subspan(begin, kTokens), options));
  };
  const Json at_once = measure(*sliced_, 0);

  options.state = *scratch_ / "calibrate.state";
  const std::size_t finished = 3;  // of five: exact, high, theta, low, mass
  options.on_progress = [&](std::size_t done, std::size_t) { return done < finished * kTokens + 50; };
  EXPECT_THAT(error_of([&] { measure(*sliced_, 0); }), HasSubstr("interrupted"));
  std::size_t first = 0, last = 0;
  options.on_progress = [&](std::size_t done, std::size_t all) {
    if (last == 0) first = done;
    last = done;
    EXPECT_EQ(all, 5 * kTokens);
    return true;
  };
  EXPECT_EQ(measure(*sliced_, 0), at_once);
  EXPECT_EQ(first / kTokens, finished);
  EXPECT_EQ(last, 5 * kTokens);
  last = 0;
  EXPECT_EQ(measure(*sliced_, 0), at_once);  // everything is in the state
  EXPECT_EQ(last, 0u);
  // A state of any other evaluation.
  EXPECT_THAT(error_of([&] { measure(*sliced_, 1); }), HasSubstr("data"));
  options.both = {{.3, .01}};
  EXPECT_THAT(error_of([&] { measure(*sliced_, 0); }), HasSubstr("grid"));
}

}  // namespace
}  // namespace sluice::eval
