#include "fetch/ready_queue.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <iostream>
#include <random>

namespace sluice::fetch {
namespace {

struct Waiting {
  Urgency urgency;
  ReadyQueue::Entry entry;
};

// Against a list that is searched.
TEST(ReadyQueue, TakesDemandBeforePrefetchBeforeUpdateAndTheLowestTurnOfEach) {
  const std::uint64_t seed = 20261124;
  std::cout << "seed " << seed << '\n';
  std::mt19937_64 random(seed);
  std::array<FetchJob, 5> jobs;
  ReadyQueue queue;
  std::vector<Waiting> list;
  std::uint64_t turn = 0;
  std::size_t promoted = 0, removed = 0, taken = 0;
  for (int step = 0; step < 20000; ++step) {
    FetchJob& job = jobs[random() % jobs.size()];
    switch (random() % 16) {
      case 0:
        queue.promote(job);
        for (Waiting& one : list)
          if (one.entry.job == &job && one.urgency != Urgency::kDemand) {
            one.urgency = Urgency::kDemand;
            ++promoted;
          }
        break;
      case 1:
        queue.remove(job);
        removed += std::erase_if(list, [&](const Waiting& one) { return one.entry.job == &job; });
        break;
      case 2:
      case 3:
      case 4:
      case 5:
      case 6:
      case 7:
        if (list.empty()) {
          EXPECT_TRUE(queue.empty());
        } else {
          const auto first = std::ranges::min_element(list, {}, [](const Waiting& one) {
            return std::pair{static_cast<int>(one.urgency), one.entry.turn};
          });
          const ReadyQueue::Entry entry = queue.take();
          ASSERT_EQ(entry.turn, first->entry.turn);
          ASSERT_EQ(entry.job, first->entry.job);
          list.erase(first);
          ++taken;
        }
        break;
      default:
        // Turns do not come in order: what waits for reads becomes ready late.
        list.push_back(
            {static_cast<Urgency>(random() % 3), {.turn = (turn++ * 7919) % 1000003, .job = &job, .op = 1}});
        queue.push(list.back().urgency, list.back().entry);
    }
    ASSERT_EQ(queue.size(), list.size());
  }
  for (const std::size_t count : {promoted, removed, taken}) EXPECT_GT(count, 1000u);
  queue.clear();
  EXPECT_TRUE(queue.empty());
}

}  // namespace
}  // namespace sluice::fetch
