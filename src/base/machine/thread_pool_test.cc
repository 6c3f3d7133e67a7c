#include "base/machine/thread_pool.h"

#include <gtest/gtest.h>

#include <atomic>
#include <mutex>
#include <numeric>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "base/error.h"

namespace sluice {
namespace {

class ThreadPoolTest : public ::testing::TestWithParam<unsigned> {};

TEST_P(ThreadPoolTest, EveryIndexRunsOnce) {
  ThreadPool pool(GetParam());
  EXPECT_EQ(pool.threads(), GetParam());
  for (const std::size_t count : {0u, 1u, 2u, 3u, 7u, 100u, 10'000u}) {
    std::vector<int> runs(count, 0);  // plain: two threads on one index would be a race
    pool.parallel_for(count, [&](std::size_t i) { ++runs[i]; });
    for (std::size_t i = 0; i < count; ++i) ASSERT_EQ(runs[i], 1) << i << " of " << count;
  }
}

TEST_P(ThreadPoolTest, RangesCoverEverythingOnGrainBoundaries) {
  ThreadPool pool(GetParam());
  for (const std::size_t grain : {1u, 3u, 8u, 64u}) {
    for (const std::size_t count : {0u, 1u, 7u, 8u, 63u, 64u, 65u, 1000u, 4096u}) {
      std::mutex mutex;
      std::set<std::pair<std::size_t, std::size_t>> ranges;
      pool.parallel_ranges(count, grain, [&](std::size_t begin, std::size_t end) {
        const std::lock_guard lock(mutex);
        ranges.emplace(begin, end);
      });
      std::size_t at = 0;
      for (const auto& [begin, end] : ranges) {
        EXPECT_EQ(begin, at);
        EXPECT_LT(begin, end);
        EXPECT_EQ(begin % grain, 0u);
        if (end != count) {
          EXPECT_EQ(end % grain, 0u);
        }
        at = end;
      }
      EXPECT_EQ(at, count);
    }
  }
}

TEST_P(ThreadPoolTest, ManyShortCallsFollowEachOther) {
  ThreadPool pool(GetParam());
  std::vector<std::uint64_t> sums(16, 0);
  for (int call = 0; call < 2000; ++call) {
    pool.parallel_for(sums.size(), [&](std::size_t i) { sums[i] += i; });
  }
  for (std::size_t i = 0; i < sums.size(); ++i) EXPECT_EQ(sums[i], 2000 * i);
}

TEST_P(ThreadPoolTest, AnExceptionIsCarriedToTheCallerAndThePoolGoesOn) {
  ThreadPool pool(GetParam());
  for (int call = 0; call < 100; ++call) {
    std::atomic<int> inside{0};
    try {
      pool.parallel_for(1000, [&](std::size_t i) {
        ++inside;
        if (i == 37) {
          --inside;
          throw std::runtime_error("index 37");
        }
        --inside;
      });
      FAIL() << "nothing was thrown";
    } catch (const std::runtime_error& e) {
      EXPECT_STREQ(e.what(), "index 37");
      EXPECT_EQ(inside.load(), 0) << "an index was still running";
    }
  }
  std::atomic<int> runs{0};
  pool.parallel_for(100, [&](std::size_t) { ++runs; });
  EXPECT_EQ(runs.load(), 100);
}

TEST_P(ThreadPoolTest, WhenAllThrowOneIsCarried) {
  ThreadPool pool(GetParam());
  EXPECT_THROW(pool.parallel_for(1000, [](std::size_t i) { throw std::out_of_range(std::to_string(i)); }),
               std::out_of_range);
}

INSTANTIATE_TEST_SUITE_P(Threads, ThreadPoolTest, ::testing::Values(1u, 2u, 3u, 8u));

TEST(ThreadPool, AllThreadsTakePart) {
  constexpr unsigned kThreads = 3;
  ThreadPool pool(kThreads);
  // Each index waits until all have started: the call returns only if three threads run at the same time, the
  // caller included.
  std::atomic<unsigned> started{0};
  std::mutex mutex;
  std::set<std::thread::id> ids;
  pool.parallel_for(kThreads, [&](std::size_t) {
    ++started;
    while (started.load() < kThreads) std::this_thread::yield();
    const std::lock_guard lock(mutex);
    ids.insert(std::this_thread::get_id());
  });
  EXPECT_EQ(ids.size(), kThreads);
  EXPECT_TRUE(ids.contains(std::this_thread::get_id()));
}

TEST(ThreadPool, TwoPoolsRunSideBySide) {
  std::vector<std::jthread> engines;
  std::atomic<int> total{0};
  for (int engine = 0; engine < 2; ++engine) {
    engines.emplace_back([&] {
      ThreadPool pool(3);
      for (int call = 0; call < 200; ++call) pool.parallel_for(20, [&](std::size_t) { ++total; });
    });
  }
  engines.clear();
  EXPECT_EQ(total.load(), 2 * 200 * 20);
}

TEST(ThreadPool, StartsAndStopsWithoutWork) {
  for (int i = 0; i < 50; ++i) ThreadPool pool(4);
}

TEST(ThreadPool, WritesOfWorkersAreSeenByTheCaller) {
  ThreadPool pool(4);
  std::vector<std::size_t> data(5000);
  for (std::size_t round = 0; round < 50; ++round) {
    pool.parallel_ranges(data.size(), 16, [&](std::size_t begin, std::size_t end) {
      for (std::size_t i = begin; i < end; ++i) data[i] = i + round;
    });
    EXPECT_EQ(std::accumulate(data.begin(), data.end(), std::size_t{0}), 4999u * 5000 / 2 + 5000 * round);
  }
}

// Idle workers take background work, calls continue meanwhile, and no piece is left behind.
TEST(ThreadPool, IdleWorkersDoBackgroundWorkBetweenCalls) {
  for (const unsigned threads : {1u, 2u, 4u}) {
    ThreadPool pool(threads);
    std::atomic<int> open{0}, done{0};
    const auto try_one = [&] {
      int left = open.load();
      do {
        if (left == 0) return false;
      } while (!open.compare_exchange_weak(left, left - 1));
      ++done;
      return true;
    };
    pool.set_background(try_one);
    std::size_t sum = 0;
    for (int round = 0; round < 200; ++round) {
      open += 3;
      pool.wake_background(3);
      std::atomic<std::size_t> calls{0};
      pool.parallel_for(7, [&](std::size_t) { ++calls; });
      sum += calls;
    }
    EXPECT_EQ(sum, 1400u);
    if (threads > 1) {
      while (done < 600) std::this_thread::yield();  // without another call
    }
    pool.set_background({});
    const int before = done;
    EXPECT_EQ(before, threads > 1 ? 600 : 0);
    open = 10;
    pool.wake_background(10);
    pool.parallel_for(7, [](std::size_t) {});
    EXPECT_EQ(done, before);  // the background function is gone
  }
}

TEST(UsableCpus, IsAtLeastOneAndAtMostTheMachine) {
  EXPECT_GE(usable_cpus(), 1u);
  EXPECT_LE(usable_cpus(), std::max(1u, std::thread::hardware_concurrency()));
}

TEST(ThreadPoolDeathTest, NestedCallsAreOurBug) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(
      {
        ThreadPool pool(1);
        pool.parallel_for(2, [&](std::size_t) { pool.parallel_for(2, [](std::size_t) {}); });
      },
      "does not nest");
}

}  // namespace
}  // namespace sluice
