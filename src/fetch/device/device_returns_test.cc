// Experts that leave the device for the host's memory.
#include "fetch/device/device_returns.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <thread>

#include "fetch/device/device_store_fixture.h"

namespace sluice::fetch {
namespace {

using device::Traffic;
using experts::DevicePlan;
using experts::EventOutcome;
using experts::ExpertId;
using experts::Part;
using experts::Parts;
using testing::begin_event;
using testing::id;

class DeviceReturnsTest : public testing::DeviceStoreTest {
 protected:
  // The device has 0 and 1, which the host has given up.
  void start_exclusive(std::uint32_t slots = 2, Bytes host = 64, Bytes host_staging = 4) {
    start(slots, 2, host, host_staging);
    exclusive_ = true;
    const DevicePlan plan = uses({0, 1}, true);
    expect_read(plan, event(plan));
    for (const std::uint16_t i : {0, 1}) EXPECT_TRUE(store_->parts(id(i)).empty());
  }
  // 2 and 3 take the places of these.
  static DevicePlan exchange() {
    DevicePlan plan = uses({2, 3}, true);
    plan.evicted = {{id(0), Part::kFull}, {id(1), Part::kFull}};
    return plan;
  }
  // An event of the host that uses these, which it is to have.
  void expect_on_host(std::initializer_list<std::uint16_t> ids, Bytes read) {
    EventOutcome outcome;
    for (const std::uint16_t i : ids) outcome.hits.push_back({id(i), Part::kFull, Part::kFull});
    device_store_->release_host(outcome, {});
    for (const auto& [one, bytes] : run(outcome)) EXPECT_EQ(bytes, truth(one));
    EXPECT_EQ(reads_.bytes, read);
  }
  // Waits until the link has begun the copy that stops there.
  void wait_for_link() { barrier_.wait_until_somebody_is_there(); }
  // Calls what is to wait for that copy. The copy goes on once the link has `seen` what the call does first,
  // or once the call has returned.
  template <class Seen, class Call>
  void open_when(const Seen& seen, const Call& call) {
    std::atomic<bool> returned = false;
    std::thread opener([&] {
      while (!seen() && !returned) std::this_thread::yield();
      barrier_.open();
    });
    call();
    returned = true;
    opener.join();
  }
  bool is_promoted() const { return link(Traffic::kUpdate).late > 0; }
  const ReturnCounters& returns() const { return device_store_->returns(); }
};

TEST_F(DeviceReturnsTest, WhatLeavesIsInTheHostsMemoryAgain) {
  start_exclusive();
  expect_read(exchange(), event(exchange(), 0, {id(0), id(1)}));
  EXPECT_EQ(returns().begun, 2u);
  EXPECT_FALSE(device_store_->stays(id(0)));
  expect_on_host({0, 1}, 0);
  EXPECT_EQ(returns().complete, 2u);
  EXPECT_EQ(returns().lost, 0u);
  EXPECT_EQ(link(Traffic::kUpdate).copies + link(Traffic::kDemand).copies, 4u + 2u);
  EXPECT_EQ(counters().missing, 0u);
}

TEST_F(DeviceReturnsTest, WhatTheHostDoesNotAdoptIsDropped) {
  start_exclusive();
  event(exchange(), 0, {id(1)});
  EXPECT_EQ(returns().begun, 1u);
  EXPECT_EQ(returns().lost, 0u);  // nobody counts on it
  expect_on_host({1}, 0);
  expect_on_host({0}, store_->disk_bytes(id(0)));
}

// An expert that is computed in the event in which it leaves.
TEST_F(DeviceReturnsTest, WhatIsUsedLeavesBehindItsLaunch) {
  start_exclusive();
  DevicePlan plan = uses({0, 2}, true);
  plan.uses[0].from = experts::DeviceBytes::kSlot;
  plan.uses[0].stays = false;
  plan.evicted = {{id(0), Part::kFull}};
  expect_read(plan, event(plan, 0, {id(0)}));
  expect_on_host({0}, 0);
  EXPECT_EQ(returns().complete, 1u);
}

TEST_F(DeviceReturnsTest, AFailedCopyLosesTheExpertAndNoStep) {
  fails_at_ = 2;  // the first return
  start_exclusive();
  expect_read(exchange(), event(exchange(), 0, {id(0), id(1)}));
  expect_on_host({0, 1}, store_->disk_bytes(id(0)));
  EXPECT_EQ(returns().lost, 1u);
  EXPECT_EQ(returns().complete, 1u);
  expect_on_host({0, 1}, 0);
}

TEST_F(DeviceReturnsTest, AnEventWaitsForWhatItUses) {
  stops_at_ = 2;
  start_exclusive();
  event(exchange(), 0, {id(0), id(1)});
  wait_for_link();
  EXPECT_TRUE(store_->parts(id(0)).empty());
  EXPECT_FALSE(store_->resident(id(0)));
  open_when([&] { return is_promoted(); }, [&] { expect_on_host({0}, 0); });
  EXPECT_EQ(returns().late, 1u);
}

TEST_F(DeviceReturnsTest, WhatTheHostEvictsMeanwhileIsGivenUp) {
  stops_at_ = 2;
  start_exclusive();
  event(exchange(), 0, {id(0), id(1)});
  wait_for_link();
  EventOutcome evicts;
  evicts.evicted = {{id(1), Part::kFull}, {id(0), Part::kFull}};  // 1 is not on the link yet
  open_when([&] { return link(Traffic::kUpdate).withdrawn > 0; },
            [&] { device_store_->release_host(evicts, {}); });
  run(evicts);
  EXPECT_EQ(returns().lost, 2u);
  expect_on_host({0, 1}, store_->disk_bytes(id(0)) + store_->disk_bytes(id(1)));
}

TEST_F(DeviceReturnsTest, AnAbandonedEventLeavesWhatIsUnderWayAlone) {
  stops_at_ = 2;
  start_exclusive();
  event(exchange(), 0, {id(0), id(1)});
  wait_for_link();
  EventOutcome outcome;
  outcome.hits = {{id(0, 1), Part::kFull, Part::kFull}};
  begin_event(*store_, outcome, {.experts = std::vector{id(0, 1)}}, *scheduler_);
  device_store_->begin(1, {});
  device_store_->abandon_event();
  store_->abandon_event();
  std::thread opener([&] { barrier_.open(); });
  expect_on_host({0, 1}, 0);
  opener.join();
  EXPECT_EQ(returns().complete, 2u);
}

// The host has no more room than for what it holds, and one more expert on its way: returns wait for what
// goes down, or are lost where nothing does.
TEST_F(DeviceReturnsTest, ReturnsWaitForRoomInTheHostsMemory) {
  start_exclusive(2, 8, 1);
  for (int i = 0; i < 6; ++i) {
    const bool even = i % 2 == 0;
    DevicePlan plan = even ? uses({2, 3}, true) : uses({0, 1}, true);
    const std::vector<ExpertId> gone = even ? std::vector{id(0), id(1)} : std::vector{id(2), id(3)};
    for (const ExpertId one : gone) plan.evicted.push_back({one, Part::kFull});
    expect_read(plan, event(plan, 0, gone));
    for (const ExpertId one : gone) EXPECT_FALSE(device_store_->stays(one));
  }
  EXPECT_EQ(returns().begun + returns().lost, 12u);
  EXPECT_GT(returns().complete, 0u);
  EXPECT_LE(accountant_.peak(), accountant_.budget());
}

// By the modelled clock its copy has ended.
TEST_F(DeviceReturnsTest, AnUpdateThatTheHostGivesUpIsWaitedFor) {
  stops_at_ = 2;
  start_exclusive(4);
  DevicePlan plan;
  plan.updates = {{id(3)}};
  event(plan);
  wait_for_link();
  EventOutcome gives;
  gives.evicted = {{id(3), Part::kFull}};
  gives.given = 1;
  open_when([&] { return is_promoted(); }, [&] { device_store_->release_host(gives, {}); });
  EXPECT_EQ(counters().updates_late, 1u);
  EXPECT_EQ(counters().updates_given_up, 0u);
  run(gives);
  EXPECT_TRUE(store_->parts(id(3)).empty());
  DevicePlan next = uses({3}, true);
  next.uses[0].from = experts::DeviceBytes::kSlot;
  expect_read(next, event(next));
  EXPECT_EQ(counters().missing, 0u);
}

}  // namespace
}  // namespace sluice::fetch
