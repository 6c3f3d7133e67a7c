#include "serve/engine/request_desk.h"

#include <gtest/gtest.h>

#include <thread>

namespace sluice::serve {
namespace {

using namespace std::chrono_literals;

std::optional<RequestId> submit(RequestDesk& desk) {
  TextRequest request;
  request.prompt = {1};
  return desk.submit({request}, std::make_shared<EventQueue>());
}

TEST(RequestDesk, TakesAsManyAsThereIsRoomFor) {
  RequestDesk desk(2);
  desk.report({.free_places = 1});
  EXPECT_TRUE(submit(desk) && submit(desk) && submit(desk));
  EXPECT_FALSE(submit(desk));
  // Those that the engine's thread has taken and not yet reported count, too.
  EXPECT_EQ(desk.take(false, 0ms).submitted.size(), 3u);
  EXPECT_FALSE(submit(desk));
  desk.report({.waiting = {2, 3}});
  EXPECT_FALSE(submit(desk));
  desk.report({.waiting = {3}});
  EXPECT_TRUE(submit(desk));
}

TEST(RequestDesk, WithoutAQueueOnlyFreePlacesAreGiven) {
  RequestDesk desk(0);
  EXPECT_FALSE(submit(desk));
  desk.report({.free_places = 1});
  EXPECT_TRUE(submit(desk));
  EXPECT_FALSE(submit(desk));
}

TEST(RequestDesk, SaysWhoWaitsWhere) {
  RequestDesk desk(8);
  const RequestId first = *submit(desk);
  desk.take(false, 0ms);
  desk.report({.waiting = {first}});
  const RequestId second = *submit(desk);
  EXPECT_EQ(desk.place_of(first)->place, 1u);
  EXPECT_EQ(desk.place_of(second)->place, 2u);
  EXPECT_EQ(desk.place_of(second)->of, 2u);
  desk.report({});
  EXPECT_FALSE(desk.place_of(first));
}

TEST(RequestDesk, WakesWhoWaits) {
  RequestDesk desk(8);
  std::thread client([&] { submit(desk); });
  DeskMessages messages;
  while (messages.submitted.empty()) messages = desk.take(true, 10s);
  client.join();
  EXPECT_EQ(messages.submitted.size(), 1u);
  desk.drain();
  EXPECT_TRUE(desk.take(false, 0ms).drain);
  EXPECT_TRUE(desk.take(false, 0ms).drain);
  desk.stop();
  EXPECT_TRUE(desk.take(true, 10s).stop);
}

}  // namespace
}  // namespace sluice::serve
