#include "fetch/device/device_store.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <memory>
#include <thread>

#include "base/error_of.h"
#include "base/files/disk.h"
#include "fetch/device/device_store_fixture.h"

namespace sluice::fetch {
namespace {

using device::Fault;
using device::Traffic;
using experts::DeviceBytes;
using experts::DevicePlan;
using experts::EventOutcome;
using experts::ExpertId;
using experts::Part;
using sluice::testing::error_of;
using testing::begin_event;
using testing::bytes_of;
using testing::DeviceStoreTest;
using testing::id;

TEST_F(DeviceStoreTest, StreamsMoreExpertsThanItHasBuffers) {
  start(0);
  const DevicePlan plan = uses({0, 1, 2, 3}, false);
  for (int i = 0; i < 3; ++i) expect_read(plan, event(plan));
  EXPECT_EQ(counters().streamed, 12u);
  EXPECT_EQ(counters().hits, 0u);
  EXPECT_EQ(link(Traffic::kDemand).copies, 12u);
  EXPECT_EQ(device_store_->pins(), 0u);
}

TEST_F(DeviceStoreTest, WhatStaysIsNotCopiedAgain) {
  start(3);
  const DevicePlan plan = uses({0, 2}, true);
  expect_read(plan, event(plan));
  EXPECT_TRUE(device_store_->stays(id(0)));
  DevicePlan next = uses({0, 1, 2}, true);
  next.uses[0].from = next.uses[2].from = DeviceBytes::kSlot;
  expect_read(next, event(next));
  EXPECT_EQ(counters().loads, 3u);
  EXPECT_EQ(counters().hits, 2u);
  EXPECT_EQ(counters().missing, 0u);
  EXPECT_EQ(link(Traffic::kDemand).copies, 3u);
}

TEST_F(DeviceStoreTest, VictimsMakeRoomEvenThoseThatAreUsed) {
  start(2);
  event(uses({0, 1}, true));
  DevicePlan plan = uses({0, 2, 3}, true);
  plan.uses[0].from = DeviceBytes::kSlot;
  plan.uses[0].stays = false;
  plan.evicted = {{id(0), Part::kFull}, {id(1), Part::kFull}};
  expect_read(plan, event(plan));
  EXPECT_FALSE(device_store_->stays(id(0)));
  EXPECT_FALSE(device_store_->stays(id(1)));
  EXPECT_TRUE(device_store_->stays(id(2)));
  EXPECT_TRUE(device_store_->stays(id(3)));
}

TEST_F(DeviceStoreTest, UpdatesComeBehindTheEventAndAreThereForTheNext) {
  start(2);
  DevicePlan plan = uses({0}, true);
  plan.updates = {{id(3)}};
  expect_read(plan, event(plan));
  EXPECT_EQ(counters().updates, 1u);
  EXPECT_TRUE(device_store_->stays(id(3)));
  DevicePlan next = uses({3}, true);
  next.uses[0].from = DeviceBytes::kSlot;
  expect_read(next, event(next));
  EXPECT_EQ(counters().hits, 1u);
  EXPECT_EQ(counters().missing, 0u);
  EXPECT_EQ(link(Traffic::kUpdate).copies + link(Traffic::kUpdate).late, 1u);
}

TEST_F(DeviceStoreTest, AnUpdateWhoseHostCopyLeavesIsGivenUpAndTriedAgain) {
  stops_at_ = 1;
  start(2);
  DevicePlan plan = uses({0}, true);
  plan.updates = {{id(3)}, {id(2)}};
  event(plan);
  barrier_.wait_until_somebody_is_there();  // 3 is being copied, 2 waits behind it
  EventOutcome evicts;
  evicts.hits = {{id(1), Part::kFull, Part::kFull}};
  evicts.evicted = {{id(2), Part::kFull}};
  device_store_->release_host(evicts, {});
  run(evicts);
  EXPECT_EQ(counters().updates_given_up, 1u);
  EXPECT_FALSE(device_store_->stays(id(2)));
  EXPECT_TRUE(device_store_->stays(id(3)));
  barrier_.open();
  EventOutcome back;
  back.misses = {{id(2), Part::kFull}};
  device_store_->release_host(back, {});
  run(back);
  device_store_->begin(0, {});
  device_store_->finish_event();
  EXPECT_TRUE(device_store_->stays(id(2)));
  DevicePlan next = uses({2, 3}, true);
  next.uses[0].from = next.uses[1].from = DeviceBytes::kSlot;
  expect_read(next, event(next));
  EXPECT_EQ(counters().missing, 0u);
}

TEST_F(DeviceStoreTest, PrefetchesAreUsedOrWasted) {
  start(2, 4);
  device_store_->prefetch(requests({0, 1, 2}));  // two demanded experts need buffers
  EXPECT_EQ(counters().prefetches, 2u);
  DevicePlan plan = uses({0, 3}, false);
  plan.uses[0].from = DeviceBytes::kPrefetch;
  expect_read(plan, event(plan));
  EXPECT_EQ(counters().useful + counters().late, 1u);
  EXPECT_EQ(counters().wasted, 1u);
  EXPECT_EQ(counters().streamed, 1u);
  EXPECT_EQ(counters().hits, 1u);
  device_store_->prefetch(requests({1}, 1));
  device_store_->prefetch(requests({2}, 1));  // takes the other's place
  EXPECT_EQ(counters().prefetches, 4u);
  EXPECT_EQ(counters().wasted, 2u);
  expect_read(plan, event(plan));  // a plan of another layer: the prefetch stays
  EXPECT_EQ(counters().wasted, 2u);
  DevicePlan stays;
  stays.uses = {{.id = id(2, 1), .from = DeviceBytes::kPrefetch, .stays = true}};
  expect_read(stays, event(stays, 1));
  EXPECT_TRUE(device_store_->stays(id(2, 1)));
}

TEST_F(DeviceStoreTest, ALatePrefetchBecomesDemand) {
  stops_at_ = 0;
  start(0, 4);
  device_store_->prefetch(requests({0, 1}));
  barrier_.wait_until_somebody_is_there();
  DevicePlan plan = uses({1}, false);
  plan.uses[0].from = DeviceBytes::kPrefetch;
  EventOutcome outcome;
  device_store_->begin(0, plan);
  EXPECT_EQ(counters().late, 1u);
  EXPECT_EQ(counters().wasted, 1u);
  EXPECT_EQ(link(Traffic::kPrefetch).late, 1u);
  barrier_.open();
  const DeviceStore::Use use = device_store_->use(id(1));
  use.ready.wait();
  device_store_->used(id(1), {});
  device_store_->finish_event();
  EXPECT_EQ(link(Traffic::kDemand).copies, 1u);
}

TEST_F(DeviceStoreTest, AfterAFailedCopyTheEventCanBeRepeated) {
  fails_at_ = 1;
  start(3);
  const DevicePlan plan = uses({0, 1, 2}, true);
  const std::string text = error_of([&] { event(plan); });
  EXPECT_NE(text.find("a copy over the link failed"), std::string::npos) << text;
  EXPECT_EQ(device_store_->pins(), 0u);
  EXPECT_FALSE(device_store_->stays(id(1)));
  DevicePlan again = plan;  // residency is logical: it counts on all of them
  for (experts::DeviceUse& use : again.uses) use.from = DeviceBytes::kSlot;
  expect_read(again, event(again));
  EXPECT_GT(counters().missing, 0u);
  for (std::uint16_t i = 0; i < 3; ++i) EXPECT_TRUE(device_store_->stays(id(i)));
}

// The host was not asked for what was on its way, so nobody can compute it.
TEST_F(DeviceStoreTest, APrefetchThatFailsBehindThePlanFailsTheEvent) {
  fails_at_ = 0;
  start(2, 4);
  device_store_->prefetch(requests({0}));
  while (device_store_->has({.id = id(0)})) std::this_thread::yield();
  DevicePlan plan = uses({0}, false);
  plan.uses[0].from = DeviceBytes::kPrefetch;
  device_store_->begin(0, plan);
  EXPECT_FALSE(device_store_->has({.id = id(0)}));
  const std::string text = error_of([&] { device_store_->finish_event(); });
  EXPECT_NE(text.find("a copy over the link failed"), std::string::npos) << text;
  device_store_->abandon_event();
  expect_read(plan, event(plan));
}

TEST_F(DeviceStoreTest, AnEventIsAbandonedWithCopiesInFlight) {
  stops_at_ = 0;
  start(2);
  const DevicePlan plan = uses({0, 1, 2}, false);
  EventOutcome outcome;
  for (const std::uint16_t i : {0, 1, 2}) outcome.hits.push_back({id(i), Part::kFull, Part::kFull});
  begin_event(*store_, outcome, {.experts = std::vector{id(0), id(1), id(2)}}, *scheduler_);
  device_store_->begin(0, plan);
  for (int i = 0; i < 2; ++i) device_store_->use(std::move(*store_->next()));
  barrier_.wait_until_somebody_is_there();
  EXPECT_EQ(device_store_->pins(), 2u);
  std::thread opener([&] { barrier_.open(); });
  device_store_->abandon_event();
  opener.join();
  store_->abandon_event();
  EXPECT_EQ(device_store_->pins(), 0u);
  expect_read(plan, event(plan));
}

// What decided it counts on their slots from then on.
TEST_F(DeviceStoreTest, AnEventThatFailsBeforeItsBeginLetsItsVictimsGo) {
  start(2);
  event(uses({0, 1}, true));
  DevicePlan plan = uses({2, 3}, true);
  plan.evicted = {{id(0), Part::kFull}, {id(1), Part::kFull}};
  device_store_->release_host({}, plan);
  device_store_->abandon_event();
  for (const std::uint16_t i : {0, 1}) EXPECT_FALSE(device_store_->stays(id(i))) << i;
  DevicePlan again = uses({2, 3}, true);
  for (experts::DeviceUse& use : again.uses) use.from = DeviceBytes::kSlot;
  expect_read(again, event(again));
  EXPECT_EQ(counters().missing, 2u);
  expect_read(again, event(again));
  EXPECT_EQ(counters().missing, 2u);
}

// The host's store must not give away what a copy is reading.
TEST_F(DeviceStoreTest, AReadThatFailsLeavesPinsToTheirCopies) {
  std::atomic<bool> broken{false};
  fetch_options_.wrap_reader = [&](std::unique_ptr<DiskReader> inner) {
    return make_faulty_reader(std::move(inner), [&](const DiskRead&) { return broken ? EIO : 0; });
  };
  stops_at_ = 0;
  start(2);
  EventOutcome outcome;
  outcome.hits.push_back({id(0), Part::kFull, Part::kFull});
  outcome.misses.push_back({id(5), Part::kFull});
  broken = true;
  begin_event(*store_, outcome, {.experts = std::vector{id(0), id(5)}}, *scheduler_);
  const DevicePlan plan = uses({0}, false);
  device_store_->begin(0, plan);
  device_store_->use(std::move(*store_->next()));
  barrier_.wait_until_somebody_is_there();
  EXPECT_THROW(store_->next(), Error);
  EXPECT_EQ(device_store_->pins(), 1u);
  std::thread opener([&] { barrier_.open(); });
  device_store_->abandon_event();
  opener.join();
  store_->abandon_event();
  broken = false;
  expect_read(plan, event(plan));
}

TEST_F(DeviceStoreTest, ABufferIsNotOverwrittenWhileALaunchReadsIt) {
  start(0);  // two buffers
  device::testing::Barrier launch;
  EventOutcome outcome;
  for (const std::uint16_t i : {0, 1, 2}) outcome.hits.push_back({id(i), Part::kFull, Part::kFull});
  begin_event(*store_, outcome, {.experts = std::vector{id(0), id(1), id(2)}}, *scheduler_);
  device_store_->begin(0, uses({0, 1, 2}, false));
  std::vector<DeviceStore::Use> all;
  std::vector<std::byte> first;
  for (int i = 0; i < 3; ++i) {
    std::optional<ExpertStore::Pin> pin = store_->next();
    const ExpertId one = pin->id();
    all.push_back(device_store_->use(std::move(*pin)));
    device_->compute().wait(all.back().ready);
    if (i == 0)
      device_->compute().enqueue({[&](const device::Access& access) {
        launch.stop_here();
        const ExpertView view = testing::view_on(access, all[0].view, false);
        first = bytes_of(view.up);
      }});
    device_store_->used(one, device_->compute().record());
  }
  launch.wait_until_somebody_is_there();
  all[1].ready.wait();
  EXPECT_FALSE(all[2].ready.done());  // it is to come into the first one's buffer
  EXPECT_EQ(all[2].view.first, all[0].view.first);
  launch.open();
  device_->compute().synchronize();
  device_store_->finish_event();
  const std::vector<std::byte> whole = truth(id(0));
  EXPECT_NE(std::search(whole.begin(), whole.end(), first.begin(), first.end()), whole.end());
}

TEST_F(DeviceStoreTest, NeedsRoomForItsBuffers) {
  open(testing::kModel, 64, 4);
  device_ = device::make_emulated_device(
      device::testing::unpaced(DeviceStore::buffer_bytes(*store_, false).expert * 4));
  { const DeviceStore fits(*device_, *store_, {.slots = 1, .staging = 2}); }
  EXPECT_THROW(DeviceStore(*device_, *store_, {.slots = 3, .staging = 2}), Error);
  EXPECT_EQ(device_->memory().accountant().used(), 0u);
}

}  // namespace
}  // namespace sluice::fetch
