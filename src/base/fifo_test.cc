#include "base/fifo.h"

#include <gtest/gtest.h>

#include <deque>
#include <random>

namespace sluice {
namespace {

TEST(Fifo, DoesWhatADequeDoes) {
  const std::uint64_t seed = 7;
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937_64 random(seed);
  Fifo<int> fifo;
  std::deque<int> deque;
  for (int step = 0; step < 20000; ++step) {
    const auto what = random() % 200;
    if (what < 70) {
      fifo.push_back(step);
      deque.push_back(step);
    } else if (what < 100) {
      fifo.push_front(step);
      deque.push_front(step);
    } else if (what == 199) {
      fifo.clear();
      deque.clear();
    } else if (!deque.empty()) {
      fifo.pop_front();
      deque.pop_front();
    }
    ASSERT_EQ(fifo.size(), deque.size());
    ASSERT_EQ(fifo.empty(), deque.empty());
    if (!deque.empty()) {
      ASSERT_EQ(fifo.front(), deque.front());
    }
  }
}

}  // namespace
}  // namespace sluice
