#include "experts/prefetch/prefetch_guard.h"

#include <gtest/gtest.h>

#include "base/bytes.h"

namespace sluice::experts {
namespace {

TEST(PrefetchGuard, LetsWhatSavesGoOn) {
  PrefetchGuard guard;
  for (int event = 0; event < 10000; ++event) EXPECT_TRUE(guard.allows(2 * kMiB, kMiB));
  EXPECT_EQ(guard.paused_events(), 0u);
}

TEST(PrefetchGuard, StopsWhatCostsMoreAndTriesAgain) {
  PrefetchGuard guard;
  int allowed = 0;
  constexpr int kEvents = 100000;
  for (int event = 0; event < kEvents; ++event) allowed += guard.allows(kMiB, 2 * kMiB);
  EXPECT_GT(allowed, kEvents / 100);  // again and again
  EXPECT_LT(allowed, kEvents / 20);   // but seldom
  EXPECT_GT(guard.paused_events(), 0u);
  // Read-ahead has become better since.
  int last = 0;
  for (int event = 0; event < 10000; ++event) last = guard.allows(2 * kMiB, kMiB) ? last + 1 : 0;
  EXPECT_GT(last, 5000);
}

TEST(PrefetchGuard, JudgesTheRecentPast) {
  PrefetchGuard guard;
  for (int event = 0; event < 10000; ++event) guard.allows(100 * kMiB, 0);
  int until = 0;
  while (guard.allows(0, kMiB)) ++until;
  EXPECT_LT(until, 1000);
}

}  // namespace
}  // namespace sluice::experts
