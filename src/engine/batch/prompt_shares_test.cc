#include "engine/batch/prompt_shares.h"

#include <gtest/gtest.h>

#include <numeric>
#include <random>
#include <string>
#include <vector>

namespace sluice::engine {
namespace {

using Shares = std::vector<std::size_t>;

TEST(PromptShares, TheOldestLeavesAnEighthToOthers) {
  EXPECT_EQ(prompt_shares(Shares{}, 64), Shares{});
  EXPECT_EQ(prompt_shares(Shares{100}, 64), Shares{64});
  EXPECT_EQ(prompt_shares(Shares{10, 5}, 64), (Shares{10, 5}));
  EXPECT_EQ(prompt_shares(Shares{100, 8}, 64), (Shares{56, 8}));
  EXPECT_EQ(prompt_shares(Shares{100, 4}, 64), (Shares{60, 4}));  // what is left is the oldest one's
  EXPECT_EQ(prompt_shares(Shares{100, 9}, 64), (Shares{64, 0}));  // does not fit whole
  EXPECT_EQ(prompt_shares(Shares{100, 9, 3, 5}, 64), (Shares{56, 0, 3, 5}));
  EXPECT_EQ(prompt_shares(Shares{20, 30, 20, 20}, 64), (Shares{20, 0, 20, 20}));
  EXPECT_EQ(prompt_shares(Shares{3, 1}, 1), (Shares{1, 0}));
}

TEST(PromptShares, FillTheChunkWithPromptsThatFit) {
  const std::uint64_t seed = std::random_device()();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937_64 random(seed);
  for (int round = 0; round < 2000; ++round) {
    Shares needs(1 + random() % 6);
    for (std::size_t& need : needs) need = 1 + random() % 40;
    const std::size_t chunk = 1 + random() % 70;
    const Shares shares = prompt_shares(needs, chunk);
    ASSERT_EQ(shares.size(), needs.size());
    const std::size_t sum = std::accumulate(shares.begin(), shares.end(), std::size_t{0});
    EXPECT_LE(sum, chunk);
    EXPECT_GE(shares[0], 1u);
    EXPECT_LE(shares[0], needs[0]);
    if (shares[0] < needs[0]) {  // then the chunk is full
      EXPECT_EQ(sum, chunk);
    }
    for (std::size_t i = 1; i < needs.size(); ++i) {
      EXPECT_TRUE(shares[i] == 0 || shares[i] == needs[i]);
      for (std::size_t j = 1; j < needs.size(); ++j) {  // none is passed over for a longer one
        EXPECT_FALSE(shares[i] == 0 && shares[j] != 0 && needs[i] < needs[j]);
      }
    }
    if (needs.size() > 1 && shares[0] > chunk - (chunk + 7) / 8 &&
        chunk > 1) {  // no other fits into what it has
      std::size_t room = chunk - std::min(needs[0], chunk - (chunk + 7) / 8);
      for (std::size_t i = 1; i < needs.size(); ++i) room -= shares[i];
      for (std::size_t i = 1; i < needs.size(); ++i) {
        EXPECT_FALSE(shares[i] == 0 && needs[i] <= room);
      }
    }
  }
}

}  // namespace
}  // namespace sluice::engine
