#include "base/rate.h"

#include <gtest/gtest.h>

namespace sluice {
namespace {

TEST(Rate, HasThreeDigitsInTheUnitThatFits) {
  EXPECT_EQ(format_rate(2e9), "2 GB/s");
  EXPECT_EQ(format_rate(60e9), "60 GB/s");
  EXPECT_EQ(format_rate(1.5e12), "1500 GB/s");
  EXPECT_EQ(format_rate(16.4e6), "16.4 MB/s");
  EXPECT_EQ(format_rate(1048576), "1.05 MB/s");
  EXPECT_EQ(format_rate(1000), "1 kB/s");
  EXPECT_EQ(format_rate(500), "500 B/s");
  EXPECT_EQ(format_rate(0), "0 B/s");
}

TEST(Rate, RoundsIntoTheNextUnit) {
  EXPECT_EQ(format_rate(999.6e6), "1 GB/s");
  EXPECT_EQ(format_rate(999.4e6), "999 MB/s");
  EXPECT_EQ(format_rate(999.6), "1 kB/s");
}

}  // namespace
}  // namespace sluice
