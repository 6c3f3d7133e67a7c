// Kept logits against the same comparison computed side by side, window by window.
#include "eval/reference_windows.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <random>

#include "base/error.h"
#include "engine/engine.h"
#include "engine/plan/engine_plan.h"
#include "engine/plan/options.h"
#include "model/architecture.h"
#include "store/source/open_checkpoint.h"

namespace sluice::eval::reference_windows_test {
namespace {

const std::string kFable = SLUICE_SOURCE_DIR "/models/fable-moe-18m";

class ReferenceWindowsTest : public ::testing::Test {
 protected:
  ReferenceWindowsTest()
      : checkpoint_(store::open_checkpoint(kFable)), model_(model::describe_model(*checkpoint_)) {
    std::mt19937_64 random(11);
    for (std::size_t i = 0; i < 60; ++i)
      tokens_.push_back(static_cast<tokenizer::TokenId>(random() % model_.config.vocab));
  }
  std::unique_ptr<engine::Engine> engine(engine::Math math) const {
    engine::EngineOptions options;
    options.memory = 256 * kMiB;
    options.threads = 1;
    options.positions = 32;
    options.math = math;
    options.cache = "lru";
    options.fetch.io = fetch::IoMode::kBuffered;
    return std::make_unique<engine::Engine>(*checkpoint_, model_,
                                            engine::resolve(options, *checkpoint_, model_), 8);
  }
  static bool go_on(std::size_t) { return true; }

  std::unique_ptr<store::Checkpoint> checkpoint_;
  model::Model model_;
  std::vector<tokenizer::TokenId> tokens_;
  const SteppedWindows windows_{.window = 24, .prompt = 8};  // 24, 24 and 12 tokens: 15, 15, 3 scored
};

TEST_F(ReferenceWindowsTest, IsWhatTwoModelsSideBySideSay) {
  const auto exact = engine(engine::Math::kF32), model = engine(engine::Math::kAuto);
  const ReferenceWindows reference(*exact, tokens_, windows_, go_on);
  EXPECT_EQ(reference.bytes(), Bytes{33} * model_.config.vocab * sizeof(float));
  const std::vector<WindowScore> alone = score_windows(*exact, tokens_, windows_, false, go_on);
  const std::vector<WindowScore> compared = reference.compare(*model, true, go_on);
  ASSERT_EQ(compared.size(), 3u);
  ASSERT_EQ(reference.scores().size(), 3u);
  std::uint64_t same = 0, scored = 0;
  double divergence = 0;
  for (std::size_t w = 0; w < 3; ++w) {
    EXPECT_EQ(reference.scores()[w].nll, alone[w].nll);
    EXPECT_EQ(reference.scores()[w].predicted, alone[w].predicted);
    TextScorer scorer(*model, windows_.prompt);
    scorer.compare_with(*exact, 32);
    const std::size_t begin = 24 * w;
    const WindowScore expected = scorer.score(
        tokens_, {.begin = begin, .end = std::min<std::size_t>(begin + 24, 60), .scored = begin + 9}, {});
    EXPECT_EQ(compared[w].predicted, expected.predicted);
    EXPECT_EQ(compared[w].nll, expected.nll);
    EXPECT_EQ(compared[w].reference_nll, expected.reference_nll);
    EXPECT_EQ(compared[w].same_top, expected.same_top);
    EXPECT_EQ(compared[w].divergence, expected.divergence);
    EXPECT_NE(compared[w].nll, compared[w].reference_nll);  // the two models differ
    same += expected.same_top;
    scored += expected.predicted;
    for (const double one : expected.divergence) divergence += one;
  }
  EXPECT_DOUBLE_EQ(top_agreement(compared), static_cast<double>(same) / static_cast<double>(scored));
  EXPECT_DOUBLE_EQ(mean_divergence(compared), divergence / static_cast<double>(scored));
}

TEST_F(ReferenceWindowsTest, StopsWhenItIsToldTo) {
  const auto exact = engine(engine::Math::kF32);
  const auto stop = [](std::size_t done) { return done < 30; };
  EXPECT_THROW(ReferenceWindows(*exact, tokens_, windows_, stop), Error);
  const ReferenceWindows reference(*exact, tokens_, windows_, go_on);
  EXPECT_THROW(reference.compare(*exact, true, stop), Error);
}

}  // namespace
}  // namespace sluice::eval::reference_windows_test
