#include "trace/rank_windows.h"

#include <gtest/gtest.h>

#include <numeric>

#include "base/error.h"
#include "trace/testing.h"

namespace sluice::trace {
namespace {

// One layer of four experts, top 2. Two sequences side by side: tokens of the first use {0, t mod 3 + 1},
// tokens of the second always use {2, 3}. Every step has two tokens of the first and one of the second;
// without `marked` the trace does not say which.
class TwoSequences final : public RoutingTrace {
 public:
  TwoSequences(std::uint32_t steps, bool marked) : RoutingTrace("two"), steps_(steps), marked_(marked) {
    header_.layers = 1;
    header_.experts = 4;
    header_.top_k = 2;
  }
  bool next(TraceEvent& event) override {
    if (step_ == steps_) return false;
    choices_.clear();
    for (std::uint32_t t = 2 * step_; t < 2 * step_ + 2; ++t)
      for (const std::uint32_t e : {0u, t % 3 + 1})
        choices_.push_back({.expert = static_cast<std::uint16_t>(e)});
    choices_.push_back({.expert = 2});
    choices_.push_back({.expert = 3});
    event = {.step = step_,
             .layer = 0,
             .phase = TracePhase::kDecode,
             .tokens = 3,
             .choices = choices_,
             .begin = begin_,
             .logits = {},
             .sequences = {},
             .token_ids = {}};
    if (marked_) event.sequences = marks_;
    ++step_;
    return true;
  }

 private:
  std::uint32_t steps_, step_ = 0;
  bool marked_;
  std::vector<experts::Choice> choices_;
  std::vector<std::uint32_t> begin_ = {0, 2, 4, 6};
  std::vector<SequenceMark> marks_ = {{0, 2, 0}, {1, 1, 0}};
};

TEST(RankWindows, AreOfASequenceEach) {
  TwoSequences trace(30, true);
  const std::vector<experts::RankWindow> windows = rank_windows(trace);
  ASSERT_EQ(windows.size(), 2u);
  EXPECT_EQ(windows[0].steps, 60u);
  EXPECT_EQ(windows[0].counts, (std::vector<std::uint64_t>{60, 20, 20, 20}));
  EXPECT_EQ(windows[1].steps, 30u);
  EXPECT_EQ(windows[1].counts, (std::vector<std::uint64_t>{0, 0, 30, 30}));
}

TEST(RankWindows, WithoutMarksThereIsOneALayer) {
  TwoSequences trace(30, false);
  const std::vector<experts::RankWindow> windows = rank_windows(trace);
  ASSERT_EQ(windows.size(), 1u);
  EXPECT_EQ(windows[0].steps, 90u);
  EXPECT_EQ(windows[0].counts, (std::vector<std::uint64_t>{60, 20, 50, 50}));
}

TEST(RecordedRanks, LeaveShortSequencesOut) {
  TwoSequences trace(60, true);  // 120 and 60 tokens
  const std::vector<double> f = recorded_ranks(trace);
  ASSERT_EQ(f.size(), 4u);
  EXPECT_NEAR(f[0], 1, 1e-5);
  for (int r = 1; r < 4; ++r) EXPECT_NEAR(f[static_cast<std::size_t>(r)], 1.0 / 3, 1e-5);
  EXPECT_NEAR(std::accumulate(f.begin(), f.end(), 0.0), 2, 1e-9);
  TwoSequences both(64, true);
  EXPECT_NEAR(recorded_ranks(both)[1], (1.0 / 3 + 1) / 2, 1e-2);
  TwoSequences none(31, true);
  EXPECT_THROW(recorded_ranks(none), Error);
  TwoSequences stopped(64, true);
  EXPECT_THROW(recorded_ranks(stopped, [] { return true; }), Error);
}

}  // namespace
}  // namespace sluice::trace
