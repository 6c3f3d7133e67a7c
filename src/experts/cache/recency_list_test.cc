#include "experts/cache/recency_list.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

namespace sluice::experts {
namespace {

TEST(RecencyList, EqualsAPlainVector) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 random(seed);
    RecencyList list;
    std::vector<ExpertId> plain;
    for (int i = 0; i < 400; ++i) {
      const ExpertId id{static_cast<std::uint16_t>(random() % 3), static_cast<std::uint16_t>(random() % 4)};
      const auto at = std::ranges::find(plain, id);
      ASSERT_EQ(list.has(id), at != plain.end());
      if (at == plain.end()) {
        list.push_most_recent(id);
        plain.push_back(id);
      } else {
        list.remove(id);
        plain.erase(at);
      }
      if (random() % 50 == 0) {
        list.clear();
        plain.clear();
      }
      ASSERT_EQ(list.order(), plain);
      ASSERT_EQ(list.size(), plain.size());
      ASSERT_EQ(list.empty(), plain.empty());
      if (!plain.empty()) {
        ASSERT_EQ(list.least_recent(), plain.front());
      }
    }
  }
}

}  // namespace
}  // namespace sluice::experts
