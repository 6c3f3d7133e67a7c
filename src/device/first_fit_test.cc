#include "device/first_fit.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <iostream>
#include <optional>
#include <random>
#include <vector>

namespace sluice::device {
namespace {

constexpr Bytes kUnit = FirstFit::kAlignment;

TEST(FirstFit, TakesTheLowestRangeThatIsLargeEnough) {
  FirstFit ranges(10 * kUnit + 17);
  EXPECT_EQ(ranges.free_bytes(), 10 * kUnit);
  EXPECT_EQ(ranges.take(3 * kUnit), 0u);
  EXPECT_EQ(ranges.take(1), 3 * kUnit);  // a whole unit
  EXPECT_EQ(ranges.take(2 * kUnit), 4 * kUnit);
  ranges.give(0, 3 * kUnit);
  EXPECT_EQ(ranges.take(4 * kUnit), 6 * kUnit);
  EXPECT_EQ(ranges.take(2 * kUnit), 0u);
  EXPECT_EQ(ranges.free_bytes(), kUnit);
}

TEST(FirstFit, RefusesWhatFitsInNoRangeThoughItFitsInAll) {
  FirstFit ranges(4 * kUnit);
  for (int i = 0; i < 4; ++i) ASSERT_TRUE(ranges.take(kUnit));
  ranges.give(0, kUnit);
  ranges.give(2 * kUnit, kUnit);
  EXPECT_EQ(ranges.free_bytes(), 2 * kUnit);
  EXPECT_EQ(ranges.largest_free(), kUnit);
  EXPECT_FALSE(ranges.take(2 * kUnit));
  ranges.give(kUnit, kUnit);  // joins its neighbours
  EXPECT_EQ(ranges.largest_free(), 3 * kUnit);
  EXPECT_EQ(ranges.take(3 * kUnit), 0u);
}

TEST(FirstFit, HugeSizesDoNotWrapRound) {
  FirstFit ranges(4 * kUnit);
  EXPECT_FALSE(ranges.take(~Bytes{0}));
  EXPECT_FALSE(FirstFit(0).take(1));
}

// A map of units, searched from the bottom.
class Model {
 public:
  explicit Model(std::size_t units) : used_(units, false) {}
  std::optional<Bytes> take(std::size_t units) {
    for (std::size_t at = 0; at + units <= used_.size(); ++at)
      if (run(at) >= units) {
        std::fill_n(used_.begin() + static_cast<std::ptrdiff_t>(at), units, true);
        return at * kUnit;
      }
    return std::nullopt;
  }
  void give(Bytes offset, std::size_t units) {
    std::fill_n(used_.begin() + static_cast<std::ptrdiff_t>(offset / kUnit), units, false);
  }
  Bytes free_bytes() const { return static_cast<Bytes>(std::ranges::count(used_, false)) * kUnit; }
  Bytes largest() const {
    std::size_t largest = 0;
    for (std::size_t at = 0; at < used_.size(); ++at) largest = std::max(largest, run(at));
    return largest * kUnit;
  }

 private:
  std::size_t run(std::size_t at) const {
    std::size_t length = 0;
    while (at + length < used_.size() && !used_[at + length]) ++length;
    return length;
  }
  std::vector<bool> used_;
};

TEST(FirstFit, AgreesWithAMapOfUnits) {
  const std::uint64_t seed = std::random_device{}();
  std::cout << "seed " << seed << '\n';
  std::mt19937_64 random(seed);
  for (int round = 0; round < 40; ++round) {
    const std::size_t units = 1 + random() % 60;
    FirstFit ranges(units * kUnit);
    Model model(units);
    struct Taken {
      Bytes offset, bytes;
    };
    std::vector<Taken> taken;
    for (int step = 0; step < 200; ++step) {
      if (random() % 2 == 0 || taken.empty()) {
        const Bytes bytes = 1 + random() % (12 * kUnit);
        const std::optional<Bytes> offset = ranges.take(bytes);
        ASSERT_EQ(offset, model.take(FirstFit::cost(bytes) / kUnit));
        if (offset) taken.push_back({*offset, bytes});
      } else {
        std::swap(taken[random() % taken.size()], taken.back());
        ranges.give(taken.back().offset, taken.back().bytes);
        model.give(taken.back().offset, FirstFit::cost(taken.back().bytes) / kUnit);
        taken.pop_back();
      }
      ASSERT_EQ(ranges.free_bytes(), model.free_bytes());
      ASSERT_EQ(ranges.largest_free(), model.largest());
    }
  }
}

TEST(FirstFitDeathTest, ABlockIsGivenOnce) {
  FirstFit ranges(4 * kUnit);
  const Bytes block = *ranges.take(kUnit);
  ranges.give(block, kUnit);
  EXPECT_DEATH(ranges.give(block, kUnit), "free already");
}

}  // namespace
}  // namespace sluice::device
