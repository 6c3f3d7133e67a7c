// Experts that a GPU which shares the host's memory reads where the host has them. Its calls are played.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "base/error_of.h"
#include "device/cuda/cuda_device.h"
#include "device/cuda/fake_cuda.h"
#include "fetch/device/device_store_fixture.h"

namespace sluice::fetch {
namespace {

using device::Traffic;
using device::testing::FakeCuda;
using experts::DeviceBytes;
using experts::DevicePlan;
using experts::EventOutcome;
using experts::ExpertId;
using experts::Part;
using experts::Parts;
using sluice::testing::error_of;
using testing::begin_event;
using testing::id;

class InPlaceTest : public testing::DeviceStoreTest {
 protected:
  InPlaceTest() { cuda_.share_memory(true); }
  ~InPlaceTest() override {
    device_store_.reset();
    device_.reset();
    EXPECT_EQ(cuda_.left(), "");
  }
  void make_device(std::uint32_t slots, std::uint32_t staging = 2) {
    device::CudaOptions options;
    options.memory = 32 * kMiB;
    options.host = &accountant_;
    options.api = &cuda_;
    options.fault = [this](std::uint64_t copy, Bytes) {
      return copy == fails_at_ ? device::Fault::kCopyFails : device::Fault::kNone;
    };
    device_ = device::make_cuda_device(std::move(options));
    device_store_ = std::make_unique<DeviceStore>(*device_, *store_, DeviceStoreOptions{slots, staging});
  }
  void start(std::uint32_t slots, std::uint32_t staging = 2) {
    open(testing::kModel, 64, 4);
    make_device(slots, staging);
    EventOutcome all;
    for (std::uint16_t i = 0; i < 4; ++i) all.misses.push_back({id(i), Part::kFull});
    run(all);
  }
  // Begins an event that computes these on the device and keeps none, there or here.
  void begin_passing(std::initializer_list<std::uint16_t> ids, Parts before) {
    EventOutcome outcome;
    std::vector<ExpertId> all;
    for (const std::uint16_t one : ids) {
      (before.empty() ? outcome.misses : outcome.hits).push_back({id(one), before, before});
      all.push_back(id(one));
    }
    begin_event(*store_, outcome, {.experts = all}, *scheduler_);
    device_store_->begin(0, uses(ids, false));
  }
  void launch_kernel(const device::Access& access, std::function<void()> kernel) override {
    FakeCuda::launch(access, std::move(kernel));
  }
  // Takes the next expert in place, and gives its use.
  DeviceStore::Use use_next(ExpertId& one) {
    std::optional<ExpertStore::Pin> pin = store_->next();
    one = pin->id();
    const DeviceStore::Use use = device_store_->use(std::move(*pin));
    EXPECT_TRUE(use.ready.done());
    return use;
  }
  // A launch that stops at `barrier`, then reads the expert.
  void launch(ExpertId one, const DeviceStore::Use& use, device::testing::Barrier& barrier,
              std::vector<std::byte>& read) {
    device_->compute().enqueue({[&, use](const device::Access& access) {
      FakeCuda::launch(access, [&barrier, &read, view = testing::view_on(access, use.view, use.low)] {
        barrier.stop_here();
        read_all(view, read);
      });
    }});
    device_store_->used(one, device_->compute().record());
  }

  FakeCuda cuda_;
};

TEST_F(InPlaceTest, WhatPassesIsNotCopied) {
  start(0);
  const DevicePlan plan = uses({0, 1, 2, 3}, false);
  for (int i = 0; i < 3; ++i) expect_read(plan, event(plan));
  EXPECT_EQ(counters().in_place, 12u);
  EXPECT_EQ(counters().streamed + counters().loads + counters().hits, 0u);
  EXPECT_EQ(link(Traffic::kDemand).bytes, 0u);
  EXPECT_EQ(device_store_->pins(), 0u);
}

TEST_F(InPlaceTest, WhatStaysIsCopied) {
  start(3);
  const DevicePlan plan = uses({0, 2}, true);
  expect_read(plan, event(plan));
  EXPECT_EQ(counters().loads, 2u);
  DevicePlan next = uses({0, 1, 2}, true);
  next.uses[0].from = next.uses[2].from = DeviceBytes::kSlot;
  next.uses[1].stays = false;
  expect_read(next, event(next));
  EXPECT_EQ(counters().hits, 2u);
  EXPECT_EQ(counters().in_place, 1u);
  EXPECT_EQ(counters().streamed, 0u);
  EXPECT_FALSE(device_store_->stays(id(1)));
  EXPECT_EQ(link(Traffic::kDemand).copies, 2u);
}

TEST_F(InPlaceTest, WhatIsThereOrUnderWayIsReadThere) {
  start(0, 4);
  device_store_->prefetch(requests({0, 1}));
  DevicePlan plan = uses({0, 1, 2}, false);
  plan.uses[0].from = plan.uses[1].from = DeviceBytes::kPrefetch;
  expect_read(plan, event(plan));
  EXPECT_EQ(counters().hits, 2u);
  EXPECT_EQ(counters().in_place, 1u);
}

TEST_F(InPlaceTest, AnExpertWhoseCopyHasFailedIsReadInPlace) {
  fails_at_ = 0;
  start(0, 4);
  device_store_->prefetch(requests({0}));
  while (device_store_->has({.id = id(0)})) std::this_thread::yield();
  DevicePlan plan = uses({0}, false);
  plan.uses[0].from = DeviceBytes::kPrefetch;
  expect_read(plan, event(plan));
  EXPECT_EQ(counters().missing, 1u);
  EXPECT_EQ(counters().in_place, 1u);
}

// The host has room for one expert, and needs it for another.
TEST_F(InPlaceTest, TheHostWaitsForALaunchThatReadsItsMemory) {
  open(testing::kModel, 0, 1);
  make_device(0);
  begin_passing({0, 1}, {});
  ExpertId one, other;
  std::vector<std::byte> read, read_later;
  device::testing::Barrier barrier;
  const DeviceStore::Use use = use_next(one);
  EXPECT_EQ(device_store_->pins(), 0u);  // no event says yet when it goes
  launch(one, use, barrier, read);
  barrier.wait_until_somebody_is_there();
  device_store_->release_pins();
  EXPECT_EQ(device_store_->pins(), 1u);
  ASSERT_TRUE(store_->next_needs_pins());
  std::atomic<bool> is_open = false;
  std::thread opener([&] {
    is_open = true;
    barrier.open();
  });
  device_store_->wait_for_a_pin();
  EXPECT_TRUE(is_open);
  opener.join();
  EXPECT_FALSE(store_->next_needs_pins());
  launch(other, use_next(other), barrier, read_later);
  EXPECT_FALSE(store_->next());
  device_->compute().synchronize();
  device_store_->finish_event();
  EXPECT_EQ(device_store_->pins(), 0u);
  EXPECT_EQ(read, truth(one));
  EXPECT_EQ(read_later, truth(other));
  EXPECT_EQ(counters().in_place, 2u);
  EXPECT_TRUE(store_->parts(one).empty());
}

TEST_F(InPlaceTest, AnEventEndsWhenItsLaunchesAreOver) {
  start(0);
  begin_passing({2}, Part::kFull);
  ExpertId one;
  std::vector<std::byte> read;
  device::testing::Barrier barrier;
  launch(one, use_next(one), barrier, read);
  barrier.wait_until_somebody_is_there();
  std::atomic<bool> is_open = false;
  std::thread opener([&] {
    is_open = true;
    barrier.open();
  });
  EXPECT_FALSE(store_->next());
  device_store_->finish_event();
  EXPECT_TRUE(is_open);
  opener.join();
  EXPECT_EQ(read, truth(id(2)));
  EventOutcome evicts;  // nobody reads it any more
  evicts.hits = {{id(1), Part::kFull, Part::kFull}};
  evicts.evicted = {{id(2), Part::kFull}};
  device_store_->release_host(evicts, {});
  run(evicts);
  EXPECT_TRUE(store_->parts(id(2)).empty());
}

TEST_F(InPlaceTest, AnErrorInALaunchLetsPinsGo) {
  start(0);
  begin_passing({0, 1}, Part::kFull);
  for (const bool fails : {true, false}) {
    ExpertId one;
    const DeviceStore::Use use = use_next(one);
    device_->compute().enqueue({[fails](const device::Access& access) {
      FakeCuda::launch(access, [fails, fault = access.queue().fault] {
        if (fails) *fault = 1;
      });
    }});
    device_store_->used(one, device_->compute().record());
  }
  EXPECT_EQ(device_store_->pins(), 2u);
  EXPECT_NE(error_of([&] { device_->compute().synchronize(); }), "no error");
  device_store_->abandon_event();
  EXPECT_EQ(device_store_->pins(), 0u);
  store_->abandon_event();
  const DevicePlan plan = uses({0, 1}, false);
  expect_read(plan, event(plan));
}

TEST_F(InPlaceTest, AnEventIsAbandonedWithALaunchUnderWay) {
  start(0);
  begin_passing({0, 1}, Part::kFull);
  ExpertId one, other;
  std::vector<std::byte> read;
  device::testing::Barrier barrier;
  launch(one, use_next(one), barrier, read);
  use_next(other);  // its launch never comes
  barrier.wait_until_somebody_is_there();
  std::atomic<bool> is_open = false;
  std::thread opener([&] {
    is_open = true;
    barrier.open();
  });
  device_store_->abandon_event();
  EXPECT_TRUE(is_open);
  opener.join();
  EXPECT_EQ(device_store_->pins(), 0u);
  store_->abandon_event();  // REQUIRES: no pin
  EXPECT_EQ(read, truth(one));
  const DevicePlan plan = uses({0, 1}, false);
  expect_read(plan, event(plan));
}

// Where tiers exclude each other, what comes back to the host comes from a buffer of the device.
TEST_F(InPlaceTest, WhatGoesBackToTheHostComesFromABuffer) {
  start(2);
  exclusive_ = true;
  const DevicePlan first = uses({0, 1}, true);
  expect_read(first, event(first));
  DevicePlan plan = uses({0, 2}, true);
  plan.uses[0].from = DeviceBytes::kSlot;
  plan.uses[0].stays = false;
  plan.evicted = {{id(0), Part::kFull}};
  expect_read(plan, event(plan, 0, {id(0)}));
  EXPECT_EQ(counters().in_place, 0u);
  EXPECT_EQ(device_store_->returns().begun, 1u);
}

TEST_F(InPlaceTest, WhatCannotBeLockedIsCopied) {
  cuda_.refuse_locks(true);
  start(0);
  const DevicePlan plan = uses({0, 1, 2, 3}, false);
  expect_read(plan, event(plan));
  EXPECT_EQ(counters().in_place, 0u);
  EXPECT_EQ(counters().streamed, 4u);
  EXPECT_EQ(link(Traffic::kDemand).copies, 4u);
}

TEST_F(InPlaceTest, AGpuWithItsOwnMemoryCopies) {
  cuda_.share_memory(false);
  start(0);
  const DevicePlan plan = uses({0, 1}, false);
  expect_read(plan, event(plan));
  EXPECT_EQ(counters().in_place, 0u);
  EXPECT_EQ(counters().streamed, 2u);
}

}  // namespace
}  // namespace sluice::fetch
