#include "eval/split_budget.h"

#include <gtest/gtest.h>

#include <random>

#include "base/error.h"

namespace sluice::eval {
namespace {

TEST(SplitBudget, NothingIsGivenTwice) {
  constexpr unsigned kSeed = 3;
  std::mt19937 random(kSeed);
  SCOPED_TRACE(kSeed);
  int fits = 0;
  for (int round = 0; round < 2000; ++round) {
    const Bytes whole = (Bytes{1} << (random() % 20 + 16)) + random() % kMiB;
    const std::size_t vocab = 1 + random() % 200000, window = 2 + random() % 4096,
                      predicted = 1 + random() % 100000;
    std::optional<Bytes> asked;
    if (random() % 2 == 0) asked = whole / (1 + random() % 8);
    try {
      const BudgetSplit split = split_budget(whole, asked, vocab, window, predicted);
      EXPECT_EQ(split.model + split.reference + split.logits + split.results, whole);
      EXPECT_EQ(split.logits, split.rows * vocab * 4);
      EXPECT_GE(split.rows, 1u);
      EXPECT_LE(split.rows, window);
      EXPECT_TRUE(split.rows == 1 || split.logits <= whole / 8);
      EXPECT_GT(split.model, 0u);
      if (asked) {
        EXPECT_EQ(split.reference, *asked);
      } else {
        EXPECT_LE(split.model - split.reference, 1u);
      }
      ++fits;
    } catch (const Error& error) {
      EXPECT_TRUE(error.kind() == ErrorKind::kBudget || error.kind() == ErrorKind::kUsage);
    }
  }
  EXPECT_GT(fits, 500);
  EXPECT_EQ(split_budget(8 * kGiB, {}, 151936, 512, 100000).rows, 512u);  // a window of a large vocabulary
}

}  // namespace
}  // namespace sluice::eval
