#include "base/duration.h"

#include <gtest/gtest.h>

#include <limits>

namespace sluice {
namespace {

TEST(Duration, HasThreeDigitsInTheUnitThatFits) {
  EXPECT_EQ(format_duration(2.5), "2.50 s");
  EXPECT_EQ(format_duration(61.04), "61.0 s");
  EXPECT_EQ(format_duration(1250.4), "1250 s");
  EXPECT_EQ(format_duration(0.25), "250 ms");
  EXPECT_EQ(format_duration(0.0123), "12.3 ms");
  EXPECT_EQ(format_duration(0.0012), "1.20 ms");
  EXPECT_EQ(format_duration(480e-6), "480 µs");
  EXPECT_EQ(format_duration(0.7e-6), "0.70 µs");
  EXPECT_EQ(format_duration(-0.0012), "-1.20 ms");
}

TEST(Duration, NothingShortIsShownAsZero) {
  EXPECT_EQ(format_duration(0.4e-6), "0.40 µs");  // 0.000 ms
  EXPECT_EQ(format_duration(0), "0 s");
  EXPECT_EQ(format_duration(1e-13), "0 s");
}

// A rounded value is never a thousand of the smaller unit.
TEST(Duration, RoundsIntoTheNextUnit) {
  EXPECT_EQ(format_duration(0.9996), "1.00 s");
  EXPECT_EQ(format_duration(0.9994), "999 ms");
  EXPECT_EQ(format_duration(999.6e-6), "1.00 ms");
  EXPECT_EQ(format_duration(9.996e-3), "10.0 ms");
  EXPECT_EQ(format_duration(99.96e-3), "100 ms");
}

TEST(Duration, WhatIsNoNumberIsShownAsThat) {
  EXPECT_EQ(format_duration(std::numeric_limits<double>::infinity()), "inf s");
}

}  // namespace
}  // namespace sluice
