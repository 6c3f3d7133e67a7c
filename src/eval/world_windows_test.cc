// Worlds that are computed beside each other are those of an engine that has each of them to itself.
#include "eval/world_windows.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/error_of.h"
#include "engine/engine.h"
#include "engine/run_report.h"
#include "engine/watch/statistics.h"
#include "eval/bundled_fixture.h"
#include "experts/layer_decider.h"
#include "store/pack/testing.h"

namespace sluice::eval {
namespace {

using engine::Engine;
using engine::EngineOptions;
using engine::WorldPlan;
using experts::PrecisionMode;
using sluice::testing::error_of;
using store::testing::TempDirectory;
using ::testing::HasSubstr;
using testing::kFable;

struct Setting {
  EngineOptions options;
  double cache = .25;
};

class Worlds : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    scratch_ = std::make_unique<TempDirectory>();
    testing::pack_fable_in_slices(*scratch_ / "m.sluice");
  }
  static void TearDownTestSuite() { scratch_.reset(); }

  void open(const std::string& path) {
    opened_.emplace(path);
    tokens_ = testing::fable_tokens(*opened_->checkpoint, 4096);
  }
  void open_sliced() { open(*scratch_ / "m.sluice"); }

  static EngineOptions options() {
    EngineOptions options = testing::options_for(kWindows);
    options.chunk = 16;  // a prompt is two of them
    options.prefetch = "none";
    return options;
  }
  std::unique_ptr<Engine> engine(const EngineOptions& options) const { return opened_->engine(options, 8); }
  Bytes all_experts(const Engine& engine) const {
    return engine.report().expert_memory_bytes() * opened_->model.experts.size();
  }

  // The slow way: an engine for each setting and each window, which decodes token by token.
  void expect_alike(const std::vector<Setting>& settings, const EngineOptions& together) {
    EngineOptions wide = together;
    engine::make_room_for_worlds(settings.size(), kWindows.window, kWindows.prompt, wide);
    const auto shared = engine(wide);
    std::vector<WorldPlan> plans;
    for (const Setting& one : settings)
      plans.push_back({opened_->plan(one.options),
                       static_cast<Bytes>(one.cache * static_cast<double>(all_experts(*shared)))});
    WorldWindows worlds(*shared, plans, kWindows);
    const std::vector<std::uint8_t> all(settings.size(), 1);
    double low = 0, mass = 0;
    for (const std::size_t w : {0, 1}) {
      const WindowOfWorlds window = worlds.score(tokens_, w, all, [](std::size_t) { return true; });
      const std::span<const tokenizer::TokenId> text =
          std::span(tokens_).subspan(w * kWindows.window, kWindows.window);
      const auto alone = [&](const EngineOptions& options, bool steps) {
        auto made = engine(options);
        return std::pair(score_windows(*made, text, kWindows, steps, [](std::size_t) { return true; }).at(0),
                         std::move(made));
      };
      EXPECT_EQ(window.plain.nll, alone(together, false).first.nll);
      for (std::size_t i = 0; i < settings.size(); ++i) {
        SCOPED_TRACE(::testing::Message() << "window " << w << ", setting " << i);
        EngineOptions options = settings[i].options;
        options.cache_bytes = plans[i].cache;
        const auto [score, made] = alone(options, true);
        const WorldScore& world = window.worlds[i].value();
        EXPECT_EQ(world.window.nll, score.nll);
        EXPECT_EQ(world.window.predicted, score.predicted);
        const engine::Statistics& statistics = made->statistics();
        const experts::RoutingChanges& changes = made->report().decider.decode_changes();
        EXPECT_EQ(world.counts.tokens, statistics.decode.tokens);
        EXPECT_EQ(world.counts.places, changes.tokens);
        EXPECT_EQ(world.counts.mass, changes.mass_lost);
        EXPECT_EQ(world.counts.low, statistics.low_share);
        EXPECT_EQ(world.counts.bytes, statistics.decode.bytes_read);
        low += world.counts.low;
        mass += world.counts.mass;
      }
    }
    EXPECT_GT(mass, 0);
    EXPECT_EQ(low > 0, opened_->checkpoint->slices().has_value());
  }

  static constexpr SteppedWindows kWindows{96, 24};  // a block of the prompt is shared in part
  static inline std::unique_ptr<TempDirectory> scratch_;
  std::optional<testing::Opened> opened_;
  std::vector<tokenizer::TokenId> tokens_;
};

TEST_F(Worlds, OfSlicesAreEnginesOfTheirOwn) {
  open_sliced();
  EngineOptions high = options(), low = options(), dbsc = options(), routed = options(), both = options();
  high.precision = PrecisionMode::kHigh;
  low.precision = PrecisionMode::kLow;
  dbsc.precision = PrecisionMode::kDbsc;
  dbsc.slices.rules.lsb_miss = experts::LsbMiss::kFetch;
  dbsc.critical = {.kind = experts::CriticalRule::Kind::kSingleHead, .theta = .3};
  const auto limit = [](EngineOptions& options) {
    options.router = "cache-prior";
    options.constraint = experts::ConstraintMode::kHard;
    options.limits.limit = 0;
    const experts::LossCurve none({{1, 0}}), mass({{1, 1}});
    options.contract = {
        .model = {.precision = none, .routing = mass, .precision_upper = none, .routing_upper = mass},
        .limit = .05};
  };
  routed.precision = PrecisionMode::kHigh;
  routed.slices.rules.lsb_miss = experts::LsbMiss::kFetch;
  limit(routed);
  both = dbsc;
  limit(both);
  expect_alike({{low}, {dbsc}, {routed, .25}, {routed, .5}, {both}}, high);
}

TEST_F(Worlds, OfWordsAreEnginesOfTheirOwn) {
  open(kFable);
  EngineOptions exact = options();
  exact.cache = "lru";
  std::vector<Setting> settings;
  for (const double alpha : {0., .35, 1.})
    for (const double cache : {.25, .5}) {
      settings.push_back({exact, cache});
      settings.back().options.router = "smoe";
      settings.back().options.smoe.alpha = alpha;
    }
  expect_alike(settings, exact);
}

// Those that nobody wants change nothing for the others.
TEST_F(Worlds, AreComputedWhereTheyAreWanted) {
  open_sliced();
  EngineOptions high = options(), low = options();
  high.precision = PrecisionMode::kHigh;
  low.precision = PrecisionMode::kLow;
  engine::make_room_for_worlds(2, kWindows.window, kWindows.prompt, high);
  const auto shared = engine(high);
  const std::vector<WorldPlan> plans = {{opened_->plan(high), kMiB}, {opened_->plan(low), kMiB}};
  WorldWindows worlds(*shared, plans, kWindows);
  const auto score = [&](std::vector<std::uint8_t> wanted) {
    return worlds.score(tokens_, 0, wanted, [](std::size_t) { return true; });
  };
  const WindowOfWorlds both = score({1, 1}), second = score({0, 1}), none = score({0, 0});
  EXPECT_EQ(both.worlds[0]->window.nll, both.plain.nll);  // nothing is changed
  EXPECT_FALSE(second.worlds[0].has_value());
  EXPECT_EQ(second.worlds[1]->window.nll, both.worlds[1]->window.nll);
  EXPECT_EQ(none.plain.nll, both.plain.nll);
  EXPECT_FALSE(none.worlds[1].has_value());
}

TEST_F(Worlds, ArePassedOnAsJson) {
  open_sliced();
  EngineOptions high = options();
  high.precision = PrecisionMode::kHigh;
  engine::make_room_for_worlds(1, kWindows.window, kWindows.prompt, high);
  const auto shared = engine(high);
  const std::vector<WorldPlan> plans(2, {opened_->plan(high), kMiB});
  WorldWindows worlds(*shared, plans, kWindows);
  const std::vector<std::uint8_t> first = {1, 0};
  const Json json = to_json(worlds.score(tokens_, 0, first, [](std::size_t) { return true; }));
  EXPECT_EQ(to_json(window_of_worlds_from_json(json, "x", 2)), json);
  EXPECT_THAT(error_of([&] { window_of_worlds_from_json(json, "x", 3); }), HasSubstr("3 worlds"));
  Json short_of = json;
  short_of["worlds"][0]["score"]["predicted"] = 1;
  EXPECT_THAT(error_of([&] { window_of_worlds_from_json(short_of, "x", 2); }), HasSubstr("score"));
}

}  // namespace
}  // namespace sluice::eval
