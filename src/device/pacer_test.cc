#include "device/pacer.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "device/fake_clock.h"

namespace sluice::device {
namespace {

using namespace std::chrono_literals;
using testing::FakeClock;

TEST(Pacer, SleepsUntilTheModelledEnd) {
  FakeClock clock;
  Pacer pacer(clock);
  pacer.run(clock.now(), 5e-3, [&] { clock.advance(1ms); });
  EXPECT_EQ(clock.now(), 5ms);
  EXPECT_EQ(clock.sleeps(), 1u);
  const LaneCounters counters = pacer.counters();
  EXPECT_EQ(counters.pieces, 1u);
  EXPECT_DOUBLE_EQ(counters.busy_s, 5e-3);
  EXPECT_EQ(counters.overruns, 0u);
}

TEST(Pacer, OwesShortWaitsAndPaysThemTogether) {
  FakeClock clock;
  Pacer pacer(clock);
  for (int i = 0; i < 10; ++i) pacer.run(0ms, 0.1e-3, [] {});
  EXPECT_EQ(clock.sleeps(), 3u);  // behind the third, sixth and ninth piece
  EXPECT_EQ(clock.now(), 900us);
  pacer.run(0ms, 0.2e-3, [] {});
  EXPECT_EQ(clock.now(), 1200us);  // 11 pieces: nothing is lost
}

TEST(Pacer, APieceBeginsWhenItWasReady) {
  FakeClock clock;
  Pacer pacer(clock);
  pacer.run(0ms, 1e-3, [] {});
  clock.advance(9ms);  // idle
  pacer.run(clock.now(), 2e-3, [] {});
  EXPECT_EQ(clock.now(), 12ms);
  // It was ready long ago: the late wake-up of its predecessor costs nothing.
  clock.advance(1ms);
  pacer.run(0ms, 4e-3, [] {});
  EXPECT_EQ(clock.now(), 16ms);
}

TEST(Pacer, CountsOverruns) {
  FakeClock clock;
  Pacer pacer(clock);
  pacer.run(0ms, 1e-3, [&] { clock.advance(3ms); });
  EXPECT_EQ(clock.now(), 3ms);
  pacer.run(clock.now(), 1e-3, [&] { clock.advance(1ms); });
  const LaneCounters counters = pacer.counters();
  EXPECT_EQ(counters.overruns, 1u);
  EXPECT_NEAR(counters.overrun_s, 2e-3, 1e-12);
  EXPECT_NEAR(counters.busy_s, 2e-3, 1e-12);
  EXPECT_EQ(clock.sleeps(), 0u);
}

TEST(Pacer, WithoutAModelTakesTheRealTime) {
  FakeClock clock;
  Pacer pacer(clock);
  pacer.run(0ms, {}, [&] { clock.advance(7ms); });
  EXPECT_EQ(clock.now(), 7ms);
  EXPECT_DOUBLE_EQ(pacer.counters().busy_s, 7e-3);
  EXPECT_EQ(pacer.counters().overruns, 0u);
  pacer.run(0ms, 2e-3, [] {});  // begins behind it
  EXPECT_EQ(clock.now(), 9ms);
}

TEST(Pacer, AnErrorIsNotPaced) {
  FakeClock clock;
  Pacer pacer(clock);
  EXPECT_THROW(pacer.run(0ms, 1.0, [] { throw Error(ErrorKind::kIo, "no"); }), Error);
  EXPECT_EQ(clock.now(), 0ms);
}

}  // namespace
}  // namespace sluice::device
