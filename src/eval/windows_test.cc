#include "eval/windows.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace sluice::eval {
namespace {

// The guide's own loop, with labels of -100 for tokens that are not scored and the model's shift by one.
std::vector<Window> guide(std::size_t seq_len, std::size_t max_length, std::size_t stride) {
  std::vector<Window> windows;
  std::size_t prev_end_loc = 0;
  for (std::size_t begin_loc = 0; begin_loc < seq_len; begin_loc += stride) {
    const std::size_t end_loc = std::min(begin_loc + max_length, seq_len);
    const std::size_t trg_len = end_loc - prev_end_loc;
    std::vector<int> labels(end_loc - begin_loc, 0);
    for (std::size_t i = 0; i < labels.size() - trg_len; ++i) labels[i] = -100;
    const auto first =
        std::find_if(labels.begin() + 1, labels.end(), [](int label) { return label != -100; });
    if (first < labels.end())
      windows.push_back({begin_loc, end_loc, begin_loc + static_cast<std::size_t>(first - labels.begin())});
    prev_end_loc = end_loc;
    if (end_loc == seq_len) break;
  }
  return windows;
}

TEST(Windows, AreThoseOfTheGuide) {
  constexpr unsigned kSeed = 7;
  std::mt19937 random(kSeed);
  SCOPED_TRACE(kSeed);
  for (int round = 0; round < 2000; ++round) {
    const std::size_t tokens = 2 + random() % 300, length = 2 + random() % 80, stride = 1 + random() % length;
    const std::vector<Window> ours = cut_windows(tokens, length, stride),
                              theirs = guide(tokens, length, stride);
    ASSERT_EQ(ours.size(), theirs.size()) << tokens << " " << length << " " << stride;
    for (std::size_t i = 0; i < ours.size(); ++i) {
      EXPECT_EQ(ours[i].begin, theirs[i].begin);
      EXPECT_EQ(ours[i].end, theirs[i].end);
      EXPECT_EQ(ours[i].scored, theirs[i].scored);
    }
  }
}

TEST(Windows, ThatOverlapScoreEachTokenButTheFirstOnce) {
  for (const std::size_t stride : {1, 3, 7, 9}) {
    std::vector<int> scored(101, 0);
    for (const Window& window : cut_windows(scored.size(), 10, stride))
      for (std::size_t t = window.scored; t < window.end; ++t) ++scored[t];
    EXPECT_EQ(scored[0], 0);
    EXPECT_TRUE(std::all_of(scored.begin() + 1, scored.end(), [](int times) { return times == 1; }))
        << stride;
  }
}

// docs/eval.md: a window is scored from its second token on, so that a last window of one token is left out.
TEST(Windows, ThatDoNotOverlapScoreFromTheSecondToken) {
  const std::vector<Window> windows = cut_windows(9, 4, 4);
  ASSERT_EQ(windows.size(), 2u);  // the ninth token is alone
  EXPECT_EQ(windows[1].begin, 4u);
  EXPECT_EQ(windows[1].scored, 5u);
  EXPECT_EQ(windows[1].end, 8u);
  EXPECT_EQ(cut_windows(10, 4, 4).back().scored, 9u);
}

}  // namespace
}  // namespace sluice::eval
