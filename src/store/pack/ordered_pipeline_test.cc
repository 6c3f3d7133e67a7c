#include "store/pack/ordered_pipeline.h"

#include <gtest/gtest.h>

#include <atomic>
#include <random>
#include <stdexcept>

namespace sluice::store {
namespace {

struct Job {
  int number = 0;
  int value = 0;
};

Pipeline<Job> pipeline_of(int count, std::vector<int>& out) {
  Pipeline<Job> pipeline;
  pipeline.next = [count, n = 0](Job& job) mutable {
    job.number = n;
    return n++ < count;
  };
  pipeline.memory = [](const Job&) { return Bytes{10}; };
  pipeline.load = [](Job& job, const StopRequest&) { job.value = job.number; };
  pipeline.work = [](Job& job, const StopRequest&) {
    if (job.number % 7 == 0) std::this_thread::sleep_for(std::chrono::microseconds(200));
    job.value *= 3;
  };
  pipeline.finish = [&out](Job& job) { out.push_back(job.value); };
  pipeline.threads = 4;
  pipeline.memory_limit = 80;
  return pipeline;
}

TEST(OrderedPipeline, FinishesInOrder) {
  for (const int count : {0, 1, 500}) {
    std::vector<int> out;
    pipeline_of(count, out).run();
    ASSERT_EQ(out.size(), static_cast<std::size_t>(count));
    for (int i = 0; i < count; ++i) EXPECT_EQ(out[static_cast<std::size_t>(i)], 3 * i);
  }
}

TEST(OrderedPipeline, KeepsTheMemoryLimitAndPassesOversizedJobs) {
  for (const Bytes limit : {Bytes{0}, Bytes{25}, Bytes{1000}}) {
    std::vector<int> out;
    std::atomic<int> in_flight{0}, most{0};
    Pipeline<Job> pipeline = pipeline_of(100, out);
    pipeline.memory_limit = limit;
    pipeline.load = [&](Job&, const StopRequest&) { most = std::max(most.load(), ++in_flight); };
    pipeline.finish = [&](Job& job) {
      --in_flight;
      out.push_back(job.number);
    };
    pipeline.run();
    EXPECT_EQ(out.size(), 100u);
    // Between the end of `finish` and the release of its memory there may be one job more than fits.
    EXPECT_LE(most, static_cast<int>(std::max<Bytes>(1, limit / 10)));
  }
}

TEST(OrderedPipeline, RethrowsFromEveryStage) {
  const auto at = [](int number) {
    return [number](Job& job) {
      if (job.number == number) throw std::runtime_error("stop");
    };
  };
  std::vector<int> out;
  for (int stage = 0; stage < 5; ++stage) {
    Pipeline<Job> pipeline = pipeline_of(300, out);
    if (stage == 0) pipeline.load = [&](Job& job, const StopRequest&) { at(50)(job); };
    if (stage == 1) pipeline.work = [&](Job& job, const StopRequest&) { at(50)(job); };
    if (stage == 2) pipeline.finish = at(50);
    if (stage == 3)
      pipeline.poll = [n = 0]() mutable {
        if (++n == 20) throw std::runtime_error("stop");
      };
    if (stage == 4) pipeline.next = [](Job&) -> bool { throw std::runtime_error("stop"); };
    EXPECT_THROW(pipeline.run(), std::runtime_error) << stage;
  }
}

// Work without an end of its own: it is told that a stage has failed, and its own error is not the one that
// is told.
TEST(OrderedPipeline, LongWorkLearnsThatAStageHasFailed) {
  const auto endless = [](Job&, const StopRequest& failed) {
    for (;;) stop_if(failed);
  };
  for (const bool loading : {false, true}) {
    std::vector<int> out;
    Pipeline<Job> pipeline = pipeline_of(10, out);
    (loading ? pipeline.load : pipeline.work) = endless;
    pipeline.poll = [] { throw std::runtime_error("interrupted"); };
    EXPECT_THROW(pipeline.run(), std::runtime_error) << loading;
  }
}

TEST(OrderedPipeline, PollsWhileWorkIsSlow) {
  std::vector<int> out;
  Pipeline<Job> pipeline = pipeline_of(1, out);
  pipeline.work = [](Job&, const StopRequest&) {
    std::this_thread::sleep_for(std::chrono::milliseconds(350));
  };
  int polls = 0;
  pipeline.poll = [&] { ++polls; };
  pipeline.run();
  EXPECT_GE(polls, 3);
}

}  // namespace
}  // namespace sluice::store
