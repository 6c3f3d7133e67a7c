#include "device/stream.h"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>
#include <vector>

#include "base/error_of.h"
#include "device/each_device_test.h"
#include "device/fake_clock.h"
#include "device/host_memory.h"
#include "device/queue_stream.h"

namespace sluice::device {
namespace {

using sluice::testing::error_of;
using testing::Barrier;

class StreamTest : public testing::EachDevice {
 protected:
  void say(int number) {
    device_->compute().enqueue({[this, number](const Access&) { said_.push_back(number); }});
  }
  void fail(const char* text) {
    device_->compute().enqueue({[text](const Access&) { throw Error(ErrorKind::kIo, text); }});
  }
  Stream& stream() { return device_->compute(); }

  std::vector<int> said_;
};

TEST_P(StreamTest, RunsInOrderOnAThreadOfItsOwn) {
  for (int i = 0; i < 100; ++i) say(i);
  std::thread::id thread;
  stream().enqueue({[&](const Access&) { thread = std::this_thread::get_id(); }});
  stream().synchronize();
  ASSERT_EQ(said_.size(), 100u);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(said_[i], i);
  EXPECT_NE(thread, std::this_thread::get_id());
  EXPECT_EQ(device_->computed().pieces, 101u);
}

TEST_P(StreamTest, AnEventIsDoneWhenWhatWasBeforeItIs) {
  Barrier barrier;
  const Event before = stream().record();
  stream().enqueue({[&](const Access&) { barrier.stop_here(); }});
  const Event behind = stream().record();
  before.wait();
  barrier.wait_until_somebody_is_there();
  EXPECT_FALSE(behind.done());
  barrier.open();
  behind.wait();
}

TEST_P(StreamTest, WaitsForEvents) {
  Signal signal;
  say(1);
  stream().wait(signal.event());
  const Event first = stream().record();
  say(2);
  device_->predict().enqueue({[](const Access&) {}});
  device_->predict().synchronize();  // another stream goes on
  EXPECT_FALSE(first.done());
  signal.complete();
  stream().synchronize();
  EXPECT_EQ(said_, (std::vector{1, 2}));
  stream().wait(signal.event());  // done already
  stream().wait({});
  say(3);
  stream().synchronize();
  EXPECT_EQ(said_.back(), 3);
}

TEST_P(StreamTest, AfterAnErrorSkipsUntilItIsTaken) {
  say(1);
  const Event good = stream().record();
  fail("first");
  fail("second");
  say(2);
  Signal never;
  stream().wait(never.event());  // skipped as well
  const Event bad = stream().record();
  EXPECT_EQ(error_of([&] { bad.wait(); }), "first");
  good.wait();
  say(3);
  EXPECT_EQ(error_of([&] { stream().synchronize(); }), "first");
  stream().synchronize();
  say(4);
  stream().synchronize();
  EXPECT_EQ(said_, (std::vector{1, 4}));
}

TEST_P(StreamTest, TheErrorOfAnEventIsItsOwn) {
  Signal signal;
  stream().wait(signal.event());
  say(1);
  signal.fail(Error(ErrorKind::kCorrupt, "damaged"));
  EXPECT_EQ(error_of([&] { stream().synchronize(); }), "damaged");
  EXPECT_TRUE(said_.empty());
}

TEST_P(StreamTest, OtherExceptionsBecomeErrors) {
  stream().enqueue({[](const Access&) { throw std::runtime_error("odd"); }});
  EXPECT_EQ(error_of([&] { stream().synchronize(); }), "an operation of a device failed: odd");
}

TEST_P(StreamTest, OneThatGoesDropsWhatHasNotBegun) {
  Barrier barrier;
  Signal never;
  stream().enqueue({[&](const Access&) { barrier.stop_here(); }});
  say(1);
  stream().wait(never.event());
  const Event event = stream().record();
  bool called = false;
  event.on_done([&](const auto&) { called = true; });
  barrier.wait_until_somebody_is_there();
  std::thread opener([&] { barrier.open(); });
  device_.reset();
  opener.join();
  ASSERT_TRUE(event.error());
  EXPECT_EQ(event.error()->kind(), ErrorKind::kInterrupted);
  EXPECT_TRUE(called);
  never.complete();  // nobody is there any more
}

TEST_P(StreamTest, OperationsReachMemoryAndThePool) {
  if (!functions_reach_memory()) GTEST_SKIP() << "a function of this program cannot reach a GPU's memory";
  const Block block = device_->memory().allocate(Account::kExperts, 1000);
  stream().enqueue({[&](const Access& access) {
    std::byte* const data = access.data(block.address(), 1000);
    device_->pool().parallel_for(1000, [&](std::size_t i) { data[i] = static_cast<std::byte>(i); });
  }});
  stream().synchronize();
  const std::vector<std::byte> bytes = content(block);
  for (std::size_t i = 0; i < 1000; ++i) EXPECT_EQ(bytes[i], static_cast<std::byte>(i));
}

// An event is done a moment before the hooks on it run: the stream must not go on without the time of its
// own.
TEST(QueueStream, WhatWaitsForAnEventIsReadyWhenTheEventIsDone) {
  testing::FakeClock clock;
  Arithmetic arithmetic(clock);
  arithmetic.bytes_per_s = 1000;
  Health health;
  Accountant accountant(kMiB);
  HostMemory memory(accountant);
  QueueStream stream(memory, arithmetic, health);
  Signal signal;
  signal.event().on_done([&](const auto&) {
    clock.advance(std::chrono::seconds(1));
    stream.enqueue({[](const Access&) {}});                      // wakes the stream
    std::this_thread::sleep_for(std::chrono::milliseconds(20));  // in which it has not been told
  });
  stream.wait(signal.event());
  stream.enqueue({[](const Access&) {}, {{.bytes = 1000}}});
  signal.complete();
  stream.synchronize();
  EXPECT_EQ(arithmetic.pacer.end(), std::chrono::seconds(2));
}

INSTANTIATE_TEST_SUITE_P(All, StreamTest, ::testing::ValuesIn(testing::devices()), testing::device_name);

}  // namespace
}  // namespace sluice::device
