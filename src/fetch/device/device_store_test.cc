#include "fetch/device/device_store.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <thread>

#include "base/error_of.h"
#include "device/emulated/device_testing.h"
#include "fetch/memory/expert_store_fixture.h"

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

constexpr ExpertId id(std::uint16_t index, std::uint16_t layer = 0) { return {layer, index}; }

// A device beside the store of a small model whose experts are all in memory.
class DeviceStoreTest : public testing::ExpertStoreTest {
 protected:
  void start(std::uint32_t slots, std::uint32_t staging = 2, const std::string& path = testing::kModel) {
    open(path, 64, 4);
    device::EmulatedOptions options = device::testing::unpaced(32 * kMiB);
    options.fault = [this](std::uint64_t copy, Bytes) {
      if (stops_at_ == copy) barrier_.stop_here();
      return fails_at_ == copy ? Fault::kCopyFails : Fault::kNone;
    };
    device_ = device::make_emulated_device(std::move(options));
    device_store_ = std::make_unique<DeviceStore>(*device_, *store_, DeviceStoreOptions{slots, staging});
    // All experts of the first two layers are in the host's memory.
    for (std::uint16_t layer = 0; layer < 2; ++layer) {
      EventOutcome all;
      for (std::uint16_t i = 0; i < 4; ++i) all.misses.push_back({id(i, layer), Part::kFull});
      run(all);
    }
  }

  // One event whose experts are all computed on the device. Returns what launches read, in the order of the
  // plan.
  std::vector<std::vector<std::byte>> event(const DevicePlan& plan, std::uint16_t layer = 0) {
    EventOutcome outcome;
    std::vector<ExpertId> ids;
    for (const experts::DeviceUse& use : plan.uses) ids.push_back(use.id);
    std::ranges::sort(ids);
    for (const ExpertId one : ids) outcome.hits.push_back({one, Part::kFull, Part::kFull});
    device_store_->release_host(outcome);
    begin_event(*store_, outcome, {.experts = ids}, *scheduler_);
    device_store_->begin(layer, plan);
    std::vector<std::vector<std::byte>> read(plan.uses.size());
    std::vector<ExpertId> given;
    const auto launch = [&](ExpertId one, DeviceStore::Use use) {
      const std::size_t place = static_cast<std::size_t>(
          std::ranges::find(plan.uses, one, &experts::DeviceUse::id) - plan.uses.begin());
      device::Stream& stream = device_->compute();
      stream.wait(use.ready);
      stream.enqueue({[&read, use, place](const device::Access& access) {
        const ExpertView view = use.view.on(access, use.low);
        for (const codec::MatrixRef* matrix : {&view.gate, &view.up, &view.down}) {
          const std::vector<std::byte> bytes = bytes_of(*matrix);
          read[place].insert(read[place].end(), bytes.begin(), bytes.end());
        }
      }});
      device_store_->used(one, stream.record());
      given.push_back(one);
    };
    try {
      for (const experts::DeviceUse& use : plan.uses)
        if (device_store_->has(use.id)) launch(use.id, device_store_->use(use.id));
      for (;;) {
        device_store_->release_pins();
        while (device_store_->pins() > 0 && store_->next_needs_pins()) device_store_->wait_for_a_pin();
        std::optional<ExpertStore::Pin> pin = store_->next();
        if (!pin) break;
        const ExpertId one = pin->id();
        if (std::ranges::find(given, one) != given.end())
          device_store_->keep_if_copied(std::move(*pin));
        else
          launch(one, device_store_->use(std::move(*pin)));
      }
      device_->compute().synchronize();
      device_store_->finish_event();
    } catch (const Error&) {
      device_store_->abandon_event();
      store_->abandon_event();
      throw;
    }
    return read;
  }

  static DevicePlan uses(std::initializer_list<std::uint16_t> ids, bool stay) {
    DevicePlan plan;
    for (const std::uint16_t one : ids) plan.uses.push_back({.id = id(one), .stays = stay});
    return plan;
  }
  void expect_read(const DevicePlan& plan, const std::vector<std::vector<std::byte>>& read) {
    for (std::size_t i = 0; i < plan.uses.size(); ++i) EXPECT_EQ(read[i], truth(plan.uses[i].id)) << i;
  }
  const DeviceStoreCounters& counters() const { return device_store_->counters(); }
  device::TrafficCounters link(Traffic traffic) const { return device_->link().counters()[traffic]; }

  std::uint64_t stops_at_ = ~0ull, fails_at_ = ~0ull;
  device::testing::Barrier barrier_;
  std::unique_ptr<device::Device> device_;
  std::unique_ptr<DeviceStore> device_store_;
};

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
  device_store_->release_host(evicts);
  run(evicts);
  EXPECT_EQ(counters().updates_given_up, 1u);
  EXPECT_FALSE(device_store_->stays(id(2)));
  EXPECT_TRUE(device_store_->stays(id(3)));
  barrier_.open();
  EventOutcome back;
  back.misses = {{id(2), Part::kFull}};
  device_store_->release_host(back);
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
  device_store_->prefetch(std::vector{id(0), id(1), id(2)});  // two demanded experts need buffers
  EXPECT_EQ(counters().prefetches, 2u);
  DevicePlan plan = uses({0, 3}, false);
  plan.uses[0].from = DeviceBytes::kPrefetch;
  expect_read(plan, event(plan));
  EXPECT_EQ(counters().useful + counters().late, 1u);
  EXPECT_EQ(counters().wasted, 1u);
  EXPECT_EQ(counters().streamed, 1u);
  EXPECT_EQ(counters().hits, 1u);
  device_store_->prefetch(std::vector{id(1, 1)});
  device_store_->prefetch(std::vector{id(2, 1)});  // takes the other's place
  EXPECT_EQ(counters().prefetches, 4u);
  EXPECT_EQ(counters().wasted, 2u);
  expect_read(plan, event(plan));  // of another layer: the prefetch stays
  EXPECT_EQ(counters().wasted, 2u);
  DevicePlan stays;
  stays.uses = {{.id = id(2, 1), .from = DeviceBytes::kPrefetch, .stays = true}};
  expect_read(stays, event(stays, 1));
  EXPECT_TRUE(device_store_->stays(id(2, 1)));
}

TEST_F(DeviceStoreTest, ALatePrefetchBecomesDemand) {
  stops_at_ = 0;
  start(0, 4);
  device_store_->prefetch(std::vector{id(0), id(1)});
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
  device_store_->prefetch(std::vector{id(0)});
  while (device_store_->has(id(0))) std::this_thread::yield();
  DevicePlan plan = uses({0}, false);
  plan.uses[0].from = DeviceBytes::kPrefetch;
  device_store_->begin(0, plan);
  EXPECT_FALSE(device_store_->has(id(0)));
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
        const ExpertView view = all[0].view.on(access, false);
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
  device_ =
      device::make_emulated_device(device::testing::unpaced(DeviceStore::buffer_bytes(*store_, false) * 4));
  { const DeviceStore fits(*device_, *store_, {.slots = 1, .staging = 2}); }
  EXPECT_THROW(DeviceStore(*device_, *store_, {.slots = 3, .staging = 2}), Error);
  EXPECT_EQ(device_->memory().accountant().used(), 0u);
}

}  // namespace
}  // namespace sluice::fetch
