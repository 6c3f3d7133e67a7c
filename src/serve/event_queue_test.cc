#include "serve/event_queue.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>

namespace sluice::serve {
namespace {

AnswerEvent text_of(std::size_t bytes) { return {.body = TextDelta{std::string(bytes, 'x'), {}}}; }

// Queues that share this many bytes.
class EventQueueTest : public ::testing::Test {
 protected:
  void share(std::size_t bytes) {
    free_ = bytes;
    queues_->share(
        [this](std::size_t taken) {
          if (taken > free_) return false;
          free_ -= taken;
          return true;
        },
        [this](std::size_t given) { free_ += given; });
  }
  static bool has_failed(EventQueue& queue) {
    const std::vector<AnswerEvent> events = queue.take();
    return events.size() == 1 && std::holds_alternative<Failure>(events.front().body) &&
           std::get<Failure>(events.front().body).kind == Failure::Kind::kCancelled;
  }

  std::size_t free_ = 0;
  const std::shared_ptr<EventQueues> queues_ = std::make_shared<EventQueues>();
};

TEST_F(EventQueueTest, GivesEventsInPieces) {
  EventQueue queue;
  for (std::size_t i = 0; i < 10; ++i) EXPECT_TRUE(queue.push(text_of(1000 + i)));
  const std::size_t all = queue.bytes();
  EXPECT_GT(all, 10'000u);
  std::size_t next = 0;
  while (next < 10) {
    const std::vector<AnswerEvent> events = queue.take(2500);
    ASSERT_FALSE(events.empty());
    EXPECT_LE(events.size(), 3u);
    for (const AnswerEvent& event : events)
      EXPECT_EQ(std::get<TextDelta>(event.body).text.size(), 1000 + next++);
  }
  EXPECT_EQ(queue.bytes(), 0u);
  EXPECT_TRUE(queue.take(2500).empty());
}

TEST_F(EventQueueTest, WhoIsNotReadLosesTheRequest) {
  EventQueue queue(5000);
  int woken = 0;
  queue.set_wake([&] { ++woken; });
  EXPECT_TRUE(queue.push(text_of(4000)));
  EXPECT_FALSE(queue.push(text_of(4000)));
  EXPECT_EQ(woken, 2);  // its reader is told, though it has not taken what was there
  EXPECT_TRUE(queue.spilled());
  EXPECT_EQ(queue.bytes(), 0u);
  EXPECT_FALSE(queue.push({.body = Finish{}}));  // what is missing is not passed over
  EXPECT_TRUE(has_failed(queue));
}

TEST_F(EventQueueTest, ALastEventAlwaysFits) {
  EventQueue queue(100);
  EXPECT_TRUE(queue.push({.body = Finish{}}));
  EXPECT_EQ(queue.take().size(), 1u);
}

TEST_F(EventQueueTest, MemoryIsTakenAndGiven) {
  share(100'000);
  {
    const std::shared_ptr<EventQueue> taken = queues_->make(), closed = queues_->make(),
                                      left = queues_->make();
    for (const auto& queue : {taken, closed, left}) EXPECT_TRUE(queue->push(text_of(10'000)));
    EXPECT_EQ(free_, 100'000 - taken->bytes() - closed->bytes() - left->bytes());
    taken->take();
    EXPECT_EQ(taken->bytes(), 0u);
    closed->close();
    EXPECT_FALSE(closed->push(text_of(1)));
    EXPECT_EQ(free_, 100'000 - left->bytes());
  }
  EXPECT_EQ(free_, 100'000u);
}

// The request with the most unread bytes loses its memory to the one that asks.
TEST_F(EventQueueTest, TheLongestIsEmptiedForOthers) {
  share(50'000);
  const std::shared_ptr<EventQueue> slow = queues_->make(), slower = queues_->make(), other = queues_->make();
  EXPECT_TRUE(slow->push(text_of(15'000)));
  EXPECT_TRUE(slower->push(text_of(25'000)));
  EXPECT_TRUE(other->push(text_of(12'000)));
  EXPECT_FALSE(slow->spilled());
  EXPECT_TRUE(has_failed(*slower));
  EXPECT_TRUE(other->push(text_of(9'000)));
  EXPECT_FALSE(other->push(text_of(20'000)));  // now the longest itself
  EXPECT_TRUE(has_failed(*other));
  EXPECT_EQ(slow->take().size(), 1u);
  EXPECT_EQ(free_, 50'000u);
}

TEST_F(EventQueueTest, LittleIsNotTakenFromOthers) {
  share(10'000);
  const std::shared_ptr<EventQueue> small = queues_->make(), large = queues_->make();
  EXPECT_TRUE(small->push(text_of(500)));
  EXPECT_FALSE(large->push(text_of(10'000)));
  EXPECT_FALSE(small->spilled());
}

}  // namespace
}  // namespace sluice::serve
