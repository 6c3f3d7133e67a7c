// The rows that are measured on a trained model: a small measurement against engines that are run one by one,
// and rows from invented numbers.
#include "reproduce/slicemoe/slicemoe_trained.h"
#include "model/golden_models.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <iterator>
#include <limits>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>

#include "base/error.h"
#include "base/files/file.h"
#include "codec/slices/quantiser_variants.h"
#include "engine/engine.h"
#include "engine/run_report.h"
#include "experts/routing/miss_constraint.h"
#include "fetch/memory/expert_store.h"
#include "model/architecture.h"
#include "model/pack_plan.h"
#include "reproduce/slicemoe/slicemoe_trained_rows.h"
#include "reproduce/well_formed.h"
#include "store/pack/rounded_copy.h"
#include "store/pack/testing.h"
#include "store/source/open_checkpoint.h"
#include "tokenizer/store_tokenizer.h"

namespace sluice::reproduce {
namespace {

using codec::SliceBits;
using engine::Engine;
using engine::EngineOptions;
using eval::WindowScore;
using experts::PrecisionMode;
using store::testing::TempDirectory;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

const std::string kFable = SLUICE_SOURCE_DIR "/models/fable-moe-18m";

TrainedSettings small_settings(const std::string& work) {
  TrainedSettings settings;
  settings.model = kFable;
  settings.text = read_text_file(kFable + "/eval.txt", kMiB).substr(0, 2000);
  settings.work = work;
  settings.options.memory = 2 * kGiB;
  settings.options.threads = 1;
  settings.options.fetch.io = fetch::IoMode::kBuffered;
  settings.grid.quantiser_tokens = 128;
  settings.grid.quantiser_window = 64;
  settings.grid.windows = {.window = 56, .prompt = 24};
  settings.grid.count = 2;
  settings.grid.quantised = {{4, 2}};
  settings.grid.curves = {{8, 4}};
  settings.grid.limits = {.05};
  settings.grid.lambdas = {0, .5};
  settings.grid.thetas = {.35, .5};
  settings.grid.kappas = {.5};
  return settings;
}

WindowScore window(double nll) { return {.predicted = 10, .nll = nll}; }

struct Opened {
  explicit Opened(const std::string& path)
      : checkpoint(store::open_checkpoint(path)), model(model::describe_model(*checkpoint)) {}
  std::unique_ptr<store::Checkpoint> checkpoint;
  model::Model model;
};

class Trained : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    scratch_ = std::make_unique<TempDirectory>();
    TrainedSettings settings = small_settings(scratch_->path());
    settings.on_stage = [](std::string_view text) {
      ++stages_;
      last_stage_ = text;
    };
    found_ = std::make_unique<TrainedResults>(measure_trained(settings));
    left_behind_ = !std::filesystem::is_empty(scratch_->path());
    exact_ = std::make_unique<Opened>(kFable);
    tokens_ =
        tokenizer::load_tokenizer_of(*exact_->checkpoint)->encode(settings.text, tokenizer::AddSpecial::kNo);
  }
  static void TearDownTestSuite() {
    exact_.reset();
    found_.reset();
    scratch_.reset();
  }

  // The result of a separate run, computed only with text_score.h.
  static std::vector<WindowScore> scores(const Opened& opened, EngineOptions options,
                                         const eval::SteppedWindows& windows, std::size_t tokens, bool steps,
                                         double* rate = nullptr) {
    options.memory = 2 * kGiB;
    options.threads = 1;
    options.positions = windows.window;
    options.fetch.io = fetch::IoMode::kBuffered;
    Engine engine(*opened.checkpoint, opened.model,
                  engine::resolve(options, *opened.checkpoint, opened.model), 8);
    const auto found = eval::score_windows(engine, std::span(tokens_).first(tokens), windows, steps,
                                           [](std::size_t) { return true; });
    if (rate != nullptr) *rate = engine.report().constraint()->account().rate();
    return found;
  }
  static std::string pack(SliceBits bits) {
    const std::string path = *scratch_ / ("s" + std::to_string(bits.high));
    if (std::filesystem::exists(path)) return path;
    store::PackOptions options;
    options.slices = bits;
    store::pack(kFable, path, model::pack_plan(*exact_->checkpoint), options);
    return path;
  }
  static const TrainedPoint& point(const char* curve, std::size_t index) {
    for (const TrainedCurve& one : found_->slices[0].limits)
      if (one.name == curve) return one.points[index];
    throw std::runtime_error(curve);
  }

  static inline std::unique_ptr<TempDirectory> scratch_;
  static inline std::unique_ptr<TrainedResults> found_;
  static inline std::unique_ptr<Opened> exact_;
  static inline std::vector<tokenizer::TokenId> tokens_;
  static inline bool left_behind_ = true;
  static inline std::size_t stages_ = 0;
  static inline std::string last_stage_;
};

TEST_F(Trained, RoundedExpertsHaveThePerplexityOfTheirCopies) {
  const eval::SteppedWindows windows{.window = 64, .prompt = 1};
  EXPECT_EQ(found_->quantiser_tokens, 124u);
  EngineOptions plain;
  plain.cache = "lru";
  const std::vector<WindowScore> exact = scores(*exact_, plain, windows, 128, false);
  EXPECT_EQ(found_->quantiser_perplexity, eval::perplexity(exact));
  ASSERT_THAT(found_->quantisers, SizeIs(codec::quantiser_variants().size()));
  // Values of SPEC §7.4, within .3 dB for any normal source.
  const double sqnr[] = {21.89, 7.86, 6.63, 9.72, -16.69, 2.25, 20.29, 3.66, 3.77, 2.25, 3.61};
  for (std::size_t i = 0; i < found_->quantisers.size(); ++i) {
    const QuantiserCell& cell = found_->quantisers[i];
    EXPECT_EQ(cell.quantiser, codec::quantiser_variants()[i].name);
    EXPECT_NEAR(cell.sqnr_db, sqnr[i], .3) << cell.quantiser;
  }
  for (const std::size_t i : {2u, 7u}) {  // amat, sym_base
    const QuantiserCell& cell = found_->quantisers[i];
    const std::string copy = *scratch_ / ("copy-" + cell.quantiser);
    store::write_rounded_copy(kFable, copy, model::pack_plan(*exact_->checkpoint),
                              codec::find_quantiser_variant(cell.quantiser), {4, 2}, {});
    const std::vector<WindowScore> own = scores(Opened(copy), plain, windows, 128, false);
    EXPECT_EQ(cell.perplexity, eval::perplexity(own));
    EXPECT_EQ(cell.loss.loss, eval::difference(own, exact).loss);
    EXPECT_GT(cell.perplexity, found_->quantiser_perplexity);
  }
}

// Figures that do not depend on the cache equal those of runs with an unlimited cache, bit for bit.
TEST_F(Trained, CurvesEndAtWhatTheirPrecisionLoses) {
  const eval::SteppedWindows windows{.window = 56, .prompt = 24};
  const std::vector<WindowScore> exact = scores(*exact_, {}, windows, 112, false);
  EXPECT_EQ(found_->perplexity, eval::perplexity(exact));
  EXPECT_EQ(found_->scored, 62u);
  const Opened s84(pack({8, 4})), s42(pack({4, 2}));
  EngineOptions high, low;
  high.precision = PrecisionMode::kHigh;
  low.precision = PrecisionMode::kLow;
  const std::vector<WindowScore> own[] = {scores(s84, high, windows, 112, true),
                                          scores(s42, high, windows, 112, true),
                                          scores(s84, low, windows, 112, true)};
  const char* names[] = {"high", "low", "AMAT-only"};
  for (std::size_t i = 0; i < 3; ++i) {
    const TrainedPoint& free = point(names[i], 1);
    EXPECT_EQ(free.perplexity, eval::perplexity(own[i])) << names[i];
    EXPECT_EQ(free.loss.loss, eval::difference(own[i], exact).loss);
    EXPECT_EQ(free.own, 1);
    EXPECT_GT(free.hbn, .05);
  }
  EXPECT_EQ(point("high", 1).low_share, 0);
  EXPECT_EQ(point("AMAT-only", 1).low_share, 1);
  EXPECT_NE(point("high", 1).perplexity, point("low", 1).perplexity);
  // λ = 0 prefers nothing.
  EXPECT_EQ(found_->slices[0].high_bit.points[0].perplexity, point("high", 1).perplexity);
  EXPECT_LT(found_->slices[0].high_bit.points[1].hbn, found_->slices[0].high_bit.points[0].hbn);
}

TEST_F(Trained, MissesAreOfTheBytesAtHighPrecision) {
  const eval::SteppedWindows windows{.window = 56, .prompt = 24};
  const Opened s84(pack({8, 4})), s42(pack({4, 2}));
  EngineOptions options;
  options.precision = PrecisionMode::kHigh;
  const auto expert = [&](const Opened& store) {
    EngineOptions any = options;
    any.memory = 2 * kGiB;
    any.positions = 8;
    any.fetch.io = fetch::IoMode::kBuffered;
    const Engine engine(*store.checkpoint, store.model, engine::resolve(any, *store.checkpoint, store.model));
    return static_cast<double>(
        engine.report().experts.sizes().bytes({0, 0}).of(experts::Part::kMsb | experts::Part::kLsb));
  };
  EXPECT_EQ(found_->slices[0].cache_bytes, static_cast<Bytes>(.25 * 192 * expert(s84)));
  options.cache_bytes = found_->slices[0].cache_bytes;
  double rate = 0;
  scores(s42, options, windows, 112, true, &rate);
  EXPECT_DOUBLE_EQ(point("low", 1).hbn, rate * expert(s42) / expert(s84));
  for (const TrainedCurve& curve : found_->slices[0].limits) {
    EXPECT_LE(curve.points[0].hbn, .05 * 1.0001) << curve.name;
    EXPECT_GT(curve.points[0].hbn, 0) << curve.name;
    EXPECT_LT(curve.points[0].own, 1) << curve.name;
    EXPECT_LT(curve.points[0].joules, curve.points[1].joules) << curve.name;
  }
  const TrainedCurve& kappa = found_->slices[0].kappa;
  ASSERT_THAT(kappa.points, SizeIs(1));
  EXPECT_GT(kappa.points[0].bytes, 0);
}

TEST_F(Trained, StagesAreAsManyAsAnnounced) {
  EXPECT_THAT(last_stage_, HasSubstr(fmt::format(" {0} of {0}: ", stages_)));
}

ErrorKind kind_of_failure(const TrainedSettings& settings) {
  try {
    measure_trained(settings);
  } catch (const Error& error) {
    return error.kind();
  }
  throw std::runtime_error("it was measured");
}

TEST_F(Trained, LeavesNothingBehind) {
  EXPECT_FALSE(left_behind_);
  EXPECT_GT(found_->work_bytes, Bytes{30'000'000});  // a rounded copy of the model
  EXPECT_LT(found_->work_bytes, Bytes{80'000'000});
  const TempDirectory work;
  const std::string own = work / "temporary/own";  // a user's directory, like all names but fresh ones
  store::testing::write_file(own, "kept");
  const auto only_own_is_there = [&] {
    return store::testing::read_file(own) == "kept" &&
           std::ranges::distance(std::filesystem::directory_iterator(work.path()),
                                 std::filesystem::directory_iterator()) == 1;
  };
  TrainedSettings settings = small_settings(work.path());
  std::size_t stages = 0;
  settings.on_stage = [&](std::string_view) { ++stages; };
  settings.interrupted = [&] { return stages == 3; };  // a copy has been made by then
  EXPECT_EQ(kind_of_failure(settings), ErrorKind::kInterrupted);
  EXPECT_EQ(stages, 3u);
  EXPECT_TRUE(only_own_is_there());
  settings = small_settings(work.path());
  settings.text = "Once upon a time.";
  EXPECT_EQ(kind_of_failure(settings), ErrorKind::kInvalid);
  EXPECT_TRUE(only_own_is_there());
  settings = small_settings(work.path());
  // The model has an encoder
  settings.model = sluice::testing::kGoldenModels + "/switch_transformers_a";
  EXPECT_EQ(kind_of_failure(settings), ErrorKind::kUnsupported);
  EXPECT_TRUE(only_own_is_there());
}

TEST_F(Trained, RowsTablesAndPicturesAreWhole) {
  EXPECT_EQ(mode_text(quantiser_row(found_.get())), "R, A");
  EXPECT_EQ(mode_text(miss_rate_row(found_.get())), "R");
  EXPECT_EQ(mode_text(pareto_row(found_.get())), "R, N");
  EXPECT_THAT(pareto_row(found_.get()).ours, HasSubstr("DBSC+AMAT+PCW"));
  for (const ReportRow& row : {quantiser_row(nullptr), miss_rate_row(nullptr), pareto_row(nullptr)}) {
    EXPECT_EQ(mode_text(row), "N");
    EXPECT_EQ(row.ours, "n/a");
    EXPECT_THAT(row.note, HasSubstr("--model"));
  }
  std::string all;
  for (const ReportSection& section : trained_sections(*found_)) all += section.markdown;
  EXPECT_THAT(all, HasSubstr("**This model is small** (18 M parameters): "));
  EXPECT_THAT(all, ::testing::Not(HasSubstr("nan")));
  const std::vector<ReportPicture> pictures = trained_pictures(*found_);
  EXPECT_THAT(pictures, SizeIs(4));
  for (const ReportPicture& picture : pictures)
    EXPECT_EQ(sluice::testing::xml_fault(picture.svg), "") << picture.file;
  const Json json = to_json(*found_);
  EXPECT_EQ(json.at("slices")[0].at("by_limit").size(), 5u);
  EXPECT_EQ(json.dump().find("null"), std::string::npos);  // no value that is not a number
}

// Runs whose logits, or router scores, are not numbers say so in every place of their numbers.
TEST_F(Trained, BrokenRunsAreMarkedInTablesJsonAndPictures) {
  TrainedResults found = *found_;
  TrainedSlices& slices = found.slices[0];
  const auto break_points = [](TrainedCurve& curve, std::size_t first) {
    for (TrainedPoint& point : std::span(curve.points).subspan(first)) {
      const double setting = point.setting;
      point = TrainedPoint();
      point.setting = setting;
      set_scores(point, {window(std::numeric_limits<double>::quiet_NaN())}, {});
      ASSERT_TRUE(point.broken);
    }
  };
  for (TrainedCurve& curve : slices.limits) break_points(curve, 0);
  for (TrainedCurve* curve : {&slices.high_bit, &slices.theta_free, &slices.kappa}) break_points(*curve, 0);
  break_points(slices.theta_limited, 1);

  EXPECT_THAT(miss_rate_row(&found).ours, HasSubstr("limit 5 %: 8 bits lose breaks, 4 bits breaks"));
  EXPECT_THAT(pareto_row(&found).ours, HasSubstr("AMAT-only breaks, DBSC+AMAT breaks"));
  EXPECT_THAT(equal_accuracy_text(found), HasSubstr("MAT84: at equal perplexity n/a (breaks)"));
  std::string all;
  for (const ReportSection& section : trained_sections(found)) all += section.markdown;
  EXPECT_THAT(all, HasSubstr("| none | | breaks | | | | | | | |\n"));
  EXPECT_THAT(all, HasSubstr("| 0.5 | | breaks | | | | | | | |\n"));  // λ, θ
  EXPECT_THAT(all, HasSubstr("| 0.5 | breaks | | | |\n"));            // κ
  EXPECT_THAT(all, HasSubstr("| DBSC+AMAT beats high, MAT84, limit 5 % | breaks against breaks |"));
  EXPECT_THAT(all, ::testing::Not(HasSubstr("nan")));
  EXPECT_THAT(all, ::testing::Not(HasSubstr("± inf")));
  const Json told = to_json(found);
  for (const Json& curve : told.at("slices")[0].at("by_limit"))
    for (const Json& point : curve.at("points")) {
      EXPECT_EQ(point.at("broken"), true);
      EXPECT_EQ(point.size(), 2u);  // besides the setting
    }
  EXPECT_EQ(to_json(*found_).at("slices")[0].at("by_limit")[0].at("points")[0].at("broken"), false);
  const auto circles = [](const std::string& svg) {
    std::size_t count = 0;
    for (std::size_t at = svg.find("<circle"); at != std::string::npos; at = svg.find("<circle", at + 1))
      ++count;
    return count;
  };
  const std::vector<ReportPicture> pictures = trained_pictures(found), whole = trained_pictures(*found_);
  ASSERT_EQ(pictures.size(), whole.size());
  const std::size_t drawn[] = {slices.low_bit.points.size(), 0, 0, 1};
  for (std::size_t i = 0; i < pictures.size(); ++i) {
    EXPECT_EQ(sluice::testing::xml_fault(pictures[i].svg), "") << pictures[i].file;
    EXPECT_EQ(pictures[i].svg.find("nan"), std::string::npos) << pictures[i].file;
    EXPECT_EQ(circles(pictures[i].svg), drawn[i]) << pictures[i].file;
    EXPECT_GT(circles(whole[i].svg), drawn[i]) << pictures[i].file;
  }
}

TEST_F(Trained, OfALargeModelNothingIsSaidThatHoldsOfASmallOne) {
  TrainedResults large = *found_;
  large.parameters = 14e9;
  EXPECT_THAT(trained_sections(large)[0].markdown, ::testing::Not(HasSubstr("small")));
}

TEST_F(Trained, LossesAreOfPerplexityUpToABound) {
  const auto table = [](double loss) {
    TrainedResults found = *found_;
    found.quantisers[0].loss = {.loss = loss, .error = .01};
    return trained_sections(found)[2].markdown;
  };
  EXPECT_THAT(table(std::log(3.0)), HasSubstr("(200.00 ± 3.00, "));
  EXPECT_THAT(table(std::log(19.9)), HasSubstr("(1890.00 ± 19.90, "));
  EXPECT_THAT(table(std::log(20.1)), HasSubstr("(> 1900, "));
}

TrainedPoint made_up(double setting, std::vector<double> nll, double bytes) {
  TrainedPoint point;
  point.setting = setting;
  point.bytes = bytes;
  for (const double one : nll) point.windows.push_back(window(one));
  return point;
}

TEST(SweepVerdict, CountsWhatIsBeyondNoiseAndReadsNoMore) {
  const TrainedPoint own = made_up(.35, {20, 30, 40}, 100);
  EXPECT_THAT(verdict_of({own, made_up(.5, {19, 29, 39.1}, 101)}, .35).better, ElementsAre(.5));
  EXPECT_THAT(verdict_of({own, made_up(.5, {19, 29, 39.1}, 103)}, .35).better, IsEmpty());  // reads more
  EXPECT_THAT(verdict_of({own, made_up(.5, {17, 31, 39.1}, 100)}, .35).better, IsEmpty());  // noise
  EXPECT_THAT(verdict_of({own, made_up(.5, {21, 31, 40.9}, 50)}, .35).better, IsEmpty());   // worse
  EXPECT_THAT(verdict_of({made_up(.5, {19, 29, 39}, 100)}, .35).better, IsEmpty());         // no default
}

TEST(EqualAccuracy, IsThatOfTheOtherAtItsLoss) {
  const auto at = [](double loss, double joules) {
    TrainedPoint point;
    point.loss.loss = loss;
    point.joules = joules;
    point.seconds = 3 * joules;
    return point;
  };
  const TrainedCurve high{"high", {at(.4, 1), at(.2, 2), at(0, 4)}};
  const EqualAccuracy equal = at_equal_accuracy(high, at(.1, .5)).value();
  EXPECT_DOUBLE_EQ(equal.energy_ratio, 6);  // 3 joules, half way between 2 and 4
  EXPECT_DOUBLE_EQ(equal.time_ratio, 6);
  EXPECT_TRUE(equal.inside);
  EXPECT_FALSE(at_equal_accuracy(high, at(.6, .5))->inside);
  EXPECT_DOUBLE_EQ(at_equal_accuracy(high, at(.6, .5))->energy_ratio, 2);
}

TEST(EqualAccuracy, IsNoneOfWhatIsBroken) {
  TrainedPoint broken, whole;
  broken.broken = true;
  whole.joules = whole.seconds = 1;
  EXPECT_FALSE(at_equal_accuracy({"high", {whole}}, broken));
  EXPECT_FALSE(at_equal_accuracy({"high", {broken}}, whole));
  EXPECT_DOUBLE_EQ(at_equal_accuracy({"high", {broken, whole}}, whole)->energy_ratio, 1);
}

TEST(QuantiserCells, WithoutNumbersAreBroken) {
  const std::vector<WindowScore> exact = {window(20), window(30)};
  TrainedResults found;
  const auto cell = [&](const char* name, double nll) -> const QuantiserCell& {
    QuantiserCell& one = found.quantisers.emplace_back();
    one.quantiser = name;
    one.bits = {8, 4};
    set_scores(one, {window(21), window(nll)}, exact);
    return one;
  };
  const auto verdict = [&] { return orderings_of(found)[0].verdict; };  // AMAT beats the code alone
  EXPECT_FALSE(cell("amat", 32).broken);
  EXPECT_NEAR(found.quantisers[0].loss.loss, 3. / 20, 1e-12);
  EXPECT_THAT(found.quantisers[0].windows, SizeIs(2));
  EXPECT_TRUE(cell("asym_keep_zero", std::numeric_limits<double>::quiet_NaN()).broken);
  EXPECT_EQ(found.quantisers[1].loss.loss, 0);
  EXPECT_EQ(verdict(), Ordering::Verdict::kHolds);
  std::swap(found.quantisers[0].quantiser, found.quantisers[1].quantiser);
  EXPECT_EQ(verdict(), Ordering::Verdict::kFails);
}

TEST(Orderings, HoldFailOrAreNoise) {
  TrainedResults found;
  const auto cell = [&](const char* name, std::vector<double> nll, bool broken = false) {
    QuantiserCell& one = found.quantisers.emplace_back();
    one.quantiser = name;
    one.bits = {8, 4};
    one.broken = broken;
    for (const double value : nll) one.windows.push_back(window(value));
  };
  cell("amat", {20, 30, 40});
  cell("asym_keep_zero", {}, true);
  cell("asym_keep_scale", {40, 50, 61});
  cell("asym_base", {21, 31, 41.1});
  cell("amat_center", {19, 31, 40});
  const auto find = [&](const char* claim) {
    for (const Ordering& one : orderings_of(found))
      if (one.claim.starts_with(claim)) return one.verdict;
    throw std::runtime_error(claim);
  };
  using Verdict = Ordering::Verdict;
  EXPECT_EQ(find("AMAT beats truncation of the code alone"), Verdict::kHolds);
  EXPECT_EQ(find("AMAT beats truncation without a new scale"), Verdict::kHolds);
  EXPECT_EQ(find("scales of its own (asym base) beat AMAT"), Verdict::kFails);
  EXPECT_EQ(find("ours: the centre"), Verdict::kWithinNoise);
}

}  // namespace
}  // namespace sluice::reproduce
