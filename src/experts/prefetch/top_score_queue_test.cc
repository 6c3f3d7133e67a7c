// SMoE's prefetch queue: a case by hand, and random steps against the rule written plainly.
#include "experts/prefetch/top_score_queue.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>
#include <string>

namespace sluice::experts::top_score_queue_test {
namespace {

using testing::ElementsAre, testing::IsEmpty;
using Ids = std::vector<std::uint32_t>;

Ids ids(std::span<const std::uint32_t> some) { return {some.begin(), some.end()}; }

TEST(TopScoreQueue, WantsTopScoreExpertsOfAllTokens) {
  const std::vector<double> scores = {.40, .25, .20, .10, .05, .05, .10, .50, .20, .15};
  TopScoreQueue queue;
  const std::vector<std::uint8_t> none(5);
  // beta is .20 and .15: with alpha .3 the borders are .26 and .195.
  queue.predict({2, 5, 2, scores}, .3, false, none);
  EXPECT_THAT(queue.wanted(0), ElementsAre(0));
  EXPECT_THAT(queue.wanted(1), ElementsAre(2, 3));
  EXPECT_THAT(queue.order(), ElementsAre(2, 0, 3));
  queue.predict({2, 5, 2, scores}, .3, false, std::vector<std::uint8_t>{0, 0, 1, 0, 0});
  EXPECT_THAT(queue.order(), ElementsAre(0, 3));
  queue.predict({2, 5, 2, scores}, .3, true, none);
  EXPECT_THAT(queue.wanted(0), ElementsAre(0, 1));
  // 2 counts with the score of the token that wants it.
  EXPECT_THAT(queue.order(), ElementsAre(2, 0, 1, 3));
  queue.predict({0, 5, 2, {}}, .3, false, none);
  EXPECT_THAT(queue.order(), IsEmpty());
}

TEST(TopScoreQueue, FollowsTheRuleOnRandomSteps) {
  constexpr std::uint64_t kSeed = 37;
  SCOPED_TRACE("seed " + std::to_string(kSeed));
  std::mt19937_64 random(kSeed);
  TopScoreQueue queue;
  for (int instance = 0; instance < 20000 && !testing::Test::HasFailure(); ++instance) {
    SCOPED_TRACE("instance " + std::to_string(instance));
    const std::uint32_t tokens = static_cast<std::uint32_t>(random() % 5),
                        n = static_cast<std::uint32_t>(random() % 9),
                        k = n == 0 ? 0 : 1 + static_cast<std::uint32_t>(random() % n);
    std::vector<double> scores(std::size_t{tokens} * n);
    for (double& s : scores) s = static_cast<double>(random() % 8) / 16;
    std::vector<std::uint8_t> resident(n);
    for (std::uint8_t& flag : resident) flag = random() % 3 == 0;
    const double alpha = static_cast<double>(random() % 5) / 4;
    const bool all = random() % 2 == 0;
    queue.predict({tokens, n, k, scores}, alpha, all, resident);

    std::map<std::uint32_t, double> best;
    for (std::uint32_t t = 0; t < tokens; ++t) {
      const auto score = [&](std::uint32_t e) { return scores[std::size_t{t} * n + e]; };
      Ids ranking;
      for (std::uint32_t e = 0; e < n; ++e) ranking.push_back(e);
      std::stable_sort(ranking.begin(), ranking.end(),
                       [&](std::uint32_t a, std::uint32_t b) { return score(a) > score(b); });
      const double beta = k < n ? score(ranking[k]) : 0;
      std::set<std::uint32_t> wanted;
      for (std::uint32_t i = 0; i < k; ++i)
        if (all || score(ranking[i]) > (1 + alpha) * beta) wanted.insert(ranking[i]);
      EXPECT_EQ(ids(queue.wanted(t)), Ids(wanted.begin(), wanted.end()));
      for (std::uint32_t e : wanted) best[e] = std::max(best.contains(e) ? best[e] : -1, score(e));
    }
    std::vector<std::pair<double, std::uint32_t>> order;
    for (const auto& [e, score] : best)
      if (resident[e] == 0) order.push_back({-score, e});
    std::ranges::sort(order);
    Ids expected;
    for (const auto& [score, e] : order) expected.push_back(e);
    EXPECT_EQ(ids(queue.order()), expected);
  }
}

}  // namespace
}  // namespace sluice::experts::top_score_queue_test
