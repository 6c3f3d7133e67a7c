#include "device/event.h"

#include <gtest/gtest.h>

#include <atomic>
#include <optional>
#include <thread>
#include <vector>

#include "base/error_of.h"

namespace sluice::device {
namespace {

const Error kFailure(ErrorKind::kIo, "the wire is cut");

TEST(Event, OfNothingIsDone) {
  const Event event;
  EXPECT_TRUE(event.done());
  EXPECT_FALSE(event.error());
  event.wait();
  EXPECT_TRUE(event.settled().done());
}

TEST(Event, IsDoneWhenItsSignalSaysSo) {
  Signal signal;
  const Event event = signal.event(), same = event;
  EXPECT_FALSE(event.done());
  signal.complete();
  EXPECT_TRUE(event.done());
  EXPECT_TRUE(same.done());
  event.wait();
}

TEST(Event, CarriesAnErrorToEveryoneWhoWaits) {
  Signal signal;
  const Event event = signal.event();
  signal.fail(kFailure);
  EXPECT_TRUE(event.done());
  ASSERT_TRUE(event.error());
  EXPECT_EQ(event.error()->kind(), ErrorKind::kIo);
  for (int i = 0; i < 2; ++i) EXPECT_EQ(sluice::testing::error_of([&] { event.wait(); }), "the wire is cut");
}

TEST(Event, CallsEachHookOnceWithTheError) {
  for (const bool fails : {false, true}) {
    Signal signal;
    const Event event = signal.event();
    int before = 0, after = 0;
    event.on_done([&](const std::optional<Error>& error) { before += error.has_value() == fails ? 1 : 100; });
    EXPECT_EQ(before, 0);
    fails ? signal.fail(kFailure) : signal.complete();
    event.on_done([&](const std::optional<Error>& error) { after += error.has_value() == fails ? 1 : 100; });
    EXPECT_EQ(before, 1);
    EXPECT_EQ(after, 1);
  }
}

TEST(Event, AHookMayAskTheEventAndAddHooks) {
  Signal signal;
  const Event event = signal.event();
  bool inner = false;
  event.on_done([&](const auto&) {
    EXPECT_TRUE(event.done());
    event.on_done([&](const auto&) { inner = true; });
  });
  signal.complete();
  EXPECT_TRUE(inner);
}

TEST(Event, SettledIsDoneWithoutTheError) {
  Signal signal;
  const Event settled = signal.event().settled();
  EXPECT_FALSE(settled.done());
  signal.fail(kFailure);
  EXPECT_TRUE(settled.done());
  EXPECT_FALSE(settled.error());
  settled.wait();
}

TEST(Event, AllOfSeveralIsDoneWhenTheLastIs) {
  EXPECT_TRUE(all_of({}).done());
  EXPECT_TRUE(all_of({Event(), Event()}).done());
  for (const int last : {0, 1, 2}) {
    std::vector<Signal> signals(3);
    const Event all = all_of({signals[0].event(), Event(), signals[1].event(), signals[2].event()});
    for (const int i : {0, 1, 2})
      if (i != last) i == 1 ? signals[1].fail(kFailure) : signals[static_cast<std::size_t>(i)].complete();
    EXPECT_FALSE(all.done());
    last == 1 ? signals[1].fail(kFailure) : signals[static_cast<std::size_t>(last)].complete();
    EXPECT_EQ(sluice::testing::error_of([&] { all.wait(); }), "the wire is cut");
  }
  Signal one;
  const Event same = all_of({Event(), one.event()});
  EXPECT_FALSE(same.done());
  one.complete();
  EXPECT_TRUE(same.done());
}

TEST(Event, OfASignalThatGoesIsGivenUp) {
  Event event, other;
  {
    Signal signal;
    event = signal.event();
    Signal moved = std::move(signal), target;
    other = target.event();
    EXPECT_FALSE(other.done());
    target = std::move(moved);
    EXPECT_TRUE(other.done());
    EXPECT_FALSE(event.done());
  }
  ASSERT_TRUE(event.error());
  EXPECT_EQ(event.error()->kind(), ErrorKind::kInterrupted);
}

TEST(Event, WakesThreadsThatWait) {
  for (int round = 0; round < 50; ++round) {
    Signal signal;
    const Event event = signal.event();
    int value = 0;  // written before, read behind the event
    std::atomic<int> hooks = 0;
    std::vector<std::thread> threads;
    for (int i = 0; i < 3; ++i)
      threads.emplace_back([&] {
        event.on_done([&](const auto&) { ++hooks; });
        event.wait();
        EXPECT_EQ(value, 7);
      });
    value = 7;
    signal.complete();
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(hooks, 3);
  }
}

TEST(SignalDeathTest, CompletesOnce) {
  Signal signal;
  signal.complete();
  EXPECT_DEATH(signal.complete(), "done twice");
}

}  // namespace
}  // namespace sluice::device
