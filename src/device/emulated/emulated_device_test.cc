#include "device/emulated/emulated_device.h"

#include <gtest/gtest.h>

#include "device/emulated/device_testing.h"
#include "device/fake_clock.h"

namespace sluice::device {
namespace {

using testing::FakeClock;

class PacedDevice : public ::testing::Test {
 protected:
  void open(std::string_view spec) {
    EmulatedOptions options;
    options.spec = parse_emulated_spec(spec, "the device");
    options.memory = 8 * kMiB;
    options.clock = &clock_;
    device_ = make_emulated_device(std::move(options));
  }
  // Seconds that one operation takes.
  double takes(std::vector<WeightUse> weights) {
    const double before = clock_.seconds();
    device_->compute().enqueue({[](const Access&) {}, std::move(weights)});
    device_->compute().synchronize();
    return clock_.seconds() - before;
  }

  FakeClock clock_;
  std::unique_ptr<Device> device_;
};

TEST_F(PacedDevice, AProductTakesItsWeightsTimeForUpTo32Tokens) {
  open("emulated:compute=1GB/s");
  EXPECT_NEAR(takes({{10'000'000, 1}}), 10e-3, 1e-9);
  EXPECT_NEAR(takes({{10'000'000, 32}}), 10e-3, 1e-9);
  EXPECT_NEAR(takes({{10'000'000, 80}}), 25e-3, 1e-9);
  EXPECT_NEAR(takes({{10'000'000, 1}, {5'000'000, 64}}), 20e-3, 1e-9);
  EXPECT_EQ(takes({}), 0);
  const LaneCounters counters = device_->computed();
  EXPECT_EQ(counters.pieces, 5u);
  EXPECT_NEAR(counters.busy_s, 65e-3, 1e-9);
  EXPECT_EQ(counters.overruns, 0u);
}

TEST_F(PacedDevice, OperationsFollowEachOther) {
  open("emulated:compute=1GB/s");
  for (int i = 0; i < 20; ++i) device_->compute().enqueue({[](const Access&) {}, {{100'000, 1}}});
  device_->compute().synchronize();
  EXPECT_GE(clock_.seconds(), 1.7e-3 - 1e-9);  // at most 0.3 of 2 ms are still owed
  EXPECT_LE(clock_.seconds(), 2e-3 + 1e-9);
}

TEST_F(PacedDevice, CountsAnOperationThatIsSlowerThanItsModel) {
  open("emulated:compute=1GB/s");
  device_->compute().enqueue(
      {[&](const Access&) { clock_.advance(std::chrono::milliseconds(5)); }, {{2'000'000, 1}}});
  device_->compute().synchronize();
  EXPECT_EQ(device_->computed().overruns, 1u);
  EXPECT_NEAR(device_->computed().overrun_s, 3e-3, 1e-9);
}

TEST_F(PacedDevice, StreamsShareTheArithmetic) {
  open("emulated:compute=1GB/s");
  device_->compute().enqueue({[](const Access&) {}, {{4'000'000, 1}}});
  device_->predict().enqueue({[](const Access&) {}, {{2'000'000, 1}}});
  device_->compute().synchronize();
  device_->predict().synchronize();
  EXPECT_NEAR(clock_.seconds(), 6e-3, 1e-9);
}

TEST_F(PacedDevice, ACopyTakesItsLatencyAndItsBytes) {
  open("emulated:link=100MB/s,latency=2ms");
  const Block block = device_->memory().allocate(Account::kExperts, 2'000'000);
  std::vector<std::byte> data(2'000'000);
  device_->link().copy(data, block.address(), Traffic::kDemand).event().wait();
  EXPECT_NEAR(clock_.seconds(), 22e-3, 1e-6);
  device_->link().copy_back(block.address(), std::span(data).first(500'000), Traffic::kResult).event().wait();
  EXPECT_NEAR(clock_.seconds(), 29e-3, 1e-6);
  const LinkCounters counters = device_->link().counters();
  EXPECT_NEAR(counters[Traffic::kDemand].busy_s, 22e-3, 1e-6);
  EXPECT_NEAR(counters[Traffic::kResult].busy_s, 7e-3, 1e-6);
  EXPECT_NEAR(counters.to_device.busy_s, 22e-3, 1e-6);
  EXPECT_GT(counters.to_device.pieces, 10u);  // chunks of a millisecond
}

TEST_F(PacedDevice, DilationMakesEverythingSlower) {
  open("emulated:link=100MB/s,latency=2ms,compute=1GB/s,dilate=3");
  EXPECT_NEAR(takes({{10'000'000, 1}}), 30e-3, 1e-9);
  const double before = clock_.seconds();
  const Block block = device_->memory().allocate(Account::kExperts, 1'000'000);
  const std::vector<std::byte> data(1'000'000);
  device_->link().copy(data, block.address(), Traffic::kDemand).event().wait();
  EXPECT_NEAR(clock_.seconds() - before, 36e-3, 1e-6);
}

TEST_F(PacedDevice, PacesTheHostWhereTheSpecificationSaysSo) {
  open("emulated:compute=1GB/s");
  EXPECT_EQ(device_->host_pace(), nullptr);
  open("emulated:host=2MB/s,dilate=4");
  const WeightUse expert{1'000'000, 3};
  const double before = clock_.seconds();
  device_->host_pace()->run({&expert, 1}, [] {});
  EXPECT_NEAR(clock_.seconds() - before, 6, 1e-9);
  EXPECT_EQ(device_->host_pace()->counters().pieces, 1u);
  EXPECT_EQ(device_->computed().pieces, 0u);
}

TEST_F(PacedDevice, AnInfiniteRateIsNotPaced) {
  open("emulated:link=inf,latency=0us,compute=inf,threads=2");
  EXPECT_EQ(takes({{1'000'000'000, 1}}), 0);
  const Block block = device_->memory().allocate(Account::kExperts, 1'000'000);
  const std::vector<std::byte> data(1'000'000);
  device_->link().copy(data, block.address(), Traffic::kDemand).event().wait();
  EXPECT_EQ(clock_.sleeps(), 0u);
  EXPECT_EQ(device_->pool().threads(), 2u);
}

TEST(EmulatedDevice, HasItsOwnBudget) {
  const auto device = make_emulated_device(testing::unpaced(kMiB));
  EXPECT_EQ(device->memory().budget(), kMiB);
  EXPECT_EQ(device->memory().space().name(), "emulated");
  EXPECT_EQ(device->name(), "emulated");
  const Block all = device->memory().allocate(Account::kDense, kMiB);
  EXPECT_THROW(device->memory().allocate(Account::kKv, 1), Error);
}

}  // namespace
}  // namespace sluice::device
