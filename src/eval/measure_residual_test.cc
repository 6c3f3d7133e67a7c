// The residual of the bundled model: its mean by a second way, and that it says what it is for.
#include "eval/measure_residual.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/error_of.h"
#include "base/setting.h"
#include "engine/engine.h"
#include "engine/forward/predictor.h"
#include "engine/session/sequence.h"
#include "engine/watch/routing_observer.h"
#include "eval/bundled_fixture.h"

namespace sluice::eval {
namespace {

using engine::GateResidual;
using sluice::testing::error_of;
using ::testing::HasSubstr;

constexpr std::size_t kWindow = 50, kWindows = 10;

// Remembers the logits of each layer, and those that were predicted for it.
class LogitObserver final : public engine::RoutingObserver {
 public:
  void on_routing(const experts::ScoresView& scores, const experts::Routing&) override {
    keep(found[scores.layer], scores);
  }
  bool wants_ahead() const override { return true; }
  void on_ahead(std::string_view name, const experts::ScoresView& next) override {
    keep(predicted[std::string(name)][next.layer], next);
  }
  using ByLayer = std::map<std::uint32_t, std::vector<float>>;  // (T, N)
  ByLayer found;
  std::map<std::string, ByLayer> predicted;

 private:
  static void keep(std::vector<float>& all, const experts::ScoresView& scores) {
    all.insert(all.end(), scores.logits.begin(), scores.logits.end());
  }
};

class ResidualTest : public ::testing::Test {
 protected:
  ResidualTest() {
    tokens_ = testing::fable_tokens(*opened_.checkpoint, 6000);
    EXPECT_GE(tokens_.size(), kWindow * kWindows);
    tokens_.resize(std::min(tokens_.size(), kWindow * kWindows + 7));
  }

  ResidualOptions options(unsigned threads = 2) const {
    ResidualOptions options;
    options.window = kWindow;
    options.engine.memory = 256 * kMiB;
    options.engine.threads = threads;
    options.engine.math = engine::Math::kF32;
    options.engine.chunk = 33;
    return options;
  }
  GateResidual measure(const ResidualOptions& options) const {
    return measure_residual(*opened_.checkpoint, opened_.model, tokens_, options);
  }
  void observe(std::shared_ptr<const GateResidual> residual, std::size_t windows,
               engine::RoutingObserver& observer) const {
    engine::EngineOptions settings = options().engine;
    settings.residual = std::move(residual);
    settings.positions = kWindow;
    const auto engine = opened_.engine(settings, 1);
    engine->observe(&observer);
    for (std::size_t i = 0; i < windows; ++i) {
      const auto sequence = engine->new_sequence();
      engine->prefill(*sequence, std::span(tokens_).subspan(i * kWindow, kWindow),
                      {[](std::size_t) { return false; }, [](std::size_t, std::span<const float>) {}});
    }
  }

  const testing::Opened opened_{testing::kFable};
  std::vector<tokenizer::TokenId> tokens_;
};

// A router is linear: what the residual adds to its logits is, for every token, the mean of what the raw
// prediction of the text lacks.
TEST_F(ResidualTest, AddsToLogitsTheMeanErrorOfTheRawPrediction) {
  const auto residual = std::make_shared<const GateResidual>(measure(options()));
  EXPECT_EQ(residual->averaged, 8 * kWindow);
  EXPECT_EQ(residual->windows, 2u);
  EXPECT_EQ(residual->tokens, kWindows * kWindow);
  LogitObserver text;
  observe(residual, 8, text);
  const std::size_t n = opened_.model.config.moe.experts;
  for (std::uint32_t layer = 1; layer < opened_.model.config.sparse_layers(); ++layer) {
    const std::vector<float>&found = text.found.at(layer), &raw = text.predicted.at("raw").at(layer),
          &shifted = text.predicted.at("residual").at(layer);
    ASSERT_EQ(found.size(), residual->averaged * n);
    ASSERT_EQ(shifted.size(), found.size());
    for (std::size_t e = 0; e < n; ++e) {
      double lacks = 0;
      for (std::size_t at = e; at < found.size(); at += n) lacks += double{found[at]} - raw[at];
      lacks /= static_cast<double>(residual->averaged);
      for (std::size_t at = e; at < found.size(); at += 37 * n)
        ASSERT_NEAR(shifted[at] - raw[at], lacks, 1e-4 * (1 + std::abs(shifted[at]))) << layer << ' ' << e;
    }
  }
}

// A residual of zeros is the raw prediction, bit for bit.
TEST_F(ResidualTest, ZerosPredictAsRaw) {
  GateResidual zeros = measure(options());
  std::fill(zeros.vectors.values.begin(), zeros.vectors.values.end(), 0.f);
  LogitObserver text;
  observe(std::make_shared<const GateResidual>(zeros), 2, text);
  EXPECT_EQ(text.predicted.at("residual"), text.predicted.at("raw"));
  EXPECT_EQ(text.predicted.at("raw").size(), opened_.model.config.sparse_layers() - 1);
}

TEST_F(ResidualTest, IsTheSameWithEveryNumberOfThreadsAndBringsInputsNearer) {
  const GateResidual one = measure(options(1)), two = measure(options(2));
  EXPECT_EQ(engine::ResidualTables(one).file(), engine::ResidualTables(two).file());
  // On text that the mean has not seen.
  EXPECT_GT(one.all.cosine_residual.mean, one.all.cosine_raw.mean);
  const double k = opened_.model.config.moe.top_k, n = static_cast<double>(opened_.model.config.moe.experts);
  for (const engine::PredictionQuality& layer : one.layers) {
    for (const engine::WindowMean* found : {&layer.raw, &layer.residual, &layer.stream}) {
      EXPECT_GT(found->mean, k / n);  // better than chance
      EXPECT_LE(found->mean, 1);
      EXPECT_TRUE(std::isfinite(found->error));
    }
    EXPECT_NEAR(layer.above_raw.mean, layer.residual.mean - layer.raw.mean, 1e-12);
  }
}

TEST_F(ResidualTest, TooShortATextIsRefused) {
  tokens_.resize(3 * kWindow - 1);
  const std::string error = error_of([&] { measure(options()); });
  EXPECT_THAT(error, HasSubstr("150 tokens"));
  EXPECT_THAT(error, HasSubstr("2 windows"));
}

TEST_F(ResidualTest, StopsWhenAsked) {
  ResidualOptions stopped = options();
  stopped.on_progress = [](std::size_t done, std::size_t) { return done < 3 * kWindow; };
  try {
    measure(stopped);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kInterrupted);
  }
}

}  // namespace
}  // namespace sluice::eval
