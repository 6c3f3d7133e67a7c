#include "device/host_pace.h"

#include <gtest/gtest.h>

#include <vector>

#include "base/error.h"
#include "device/fake_clock.h"

namespace sluice::device {
namespace {

using namespace std::chrono_literals;
using testing::FakeClock;

class HostPaceTest : public ::testing::Test {
 protected:
  HostPaceTest() { clock_.advance(1s); }  // no clock begins with the first work
  // Milliseconds that work with these weights takes, of which it computes for `real`.
  double takes(const std::vector<WeightUse>& weights, Clock::Time real = 0ms) {
    const double before = clock_.seconds();
    pace_.run(weights, [&] { clock_.advance(real); });
    return 1e3 * (clock_.seconds() - before);
  }

  FakeClock clock_;
  HostPace pace_{1e6, clock_};  // 1 MB/s: a byte is a microsecond
};

TEST_F(HostPaceTest, WeightsAreReadOnceAToken) {
  EXPECT_NEAR(takes({{3000, 1}}), 3, 1e-6);
  EXPECT_NEAR(takes({{3000, 5}}, 2ms), 15, 1e-6);
  EXPECT_NEAR(takes({{3000, 1}, {1000, 4}}), 7, 1e-6);
  const LaneCounters counters = pace_.counters();
  EXPECT_EQ(counters.pieces, 3u);
  EXPECT_NEAR(counters.busy_s, 25e-3, 1e-9);
  EXPECT_EQ(counters.overruns, 0u);
}

TEST_F(HostPaceTest, ALateWakeUpCostsNothingAndAnIdleHostSavesNothing) {
  takes({{3000, 1}});
  clock_.advance(200us);
  EXPECT_NEAR(takes({{3000, 1}}), 2.8, 1e-6);
  clock_.advance(400us);
  EXPECT_NEAR(takes({{3000, 1}}), 3, 1e-6);
}

TEST_F(HostPaceTest, ShortWorkIsOwed) {
  EXPECT_EQ(takes({{200, 1}}), 0);
  EXPECT_NEAR(takes({{200, 1}}), .4, 1e-6);
}

TEST_F(HostPaceTest, CountsWorkThatIsSlowerThanItsModel) {
  EXPECT_NEAR(takes({{1000, 1}}, 5ms), 5, 1e-6);
  EXPECT_EQ(pace_.counters().overruns, 1u);
  EXPECT_NEAR(pace_.counters().overrun_s, 4e-3, 1e-9);
}

TEST_F(HostPaceTest, WorkWithoutWeightsTakesItsRealTime) {
  EXPECT_NEAR(takes({}, 7ms), 7, 1e-6);
  EXPECT_EQ(pace_.counters().pieces, 0u);
}

TEST_F(HostPaceTest, AnErrorIsNotPaced) {
  const std::vector<WeightUse> weights = {{9000, 1}};
  EXPECT_THROW(pace_.run(weights, [] { throw Error(ErrorKind::kCorrupt, "no"); }), Error);
  EXPECT_EQ(clock_.sleeps(), 0u);
}

}  // namespace
}  // namespace sluice::device
