// What read-ahead reads in vain is counted, and stops where it only keeps the disk from what is needed.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "engine/prefetch_testing.h"
#include "engine/run_report.h"
#include "engine/watch/statistics.h"
#include "experts/prefetch/prefetch_trial.h"
#include "fetch/memory/expert_store.h"
#include "fetch/memory/fetch_counters.h"
#include "model/architecture.h"

namespace sluice::engine {
namespace {

// A step waits for the disk most of its time, also where computing takes ten times as long.
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
constexpr double kBytesPerSecond = 10e6;
#else
constexpr double kBytesPerSecond = 100e6;
#endif

// A disk that does one read after the other, and takes the same time for each byte.
class PacedReader final : public DiskReader {
 public:
  PacedReader(std::unique_ptr<DiskReader> inner, double bytes_per_second)
      : inner_(std::move(inner)), rate_(bytes_per_second) {}

  void submit(const DiskRead& read) override {
    const auto takes = std::chrono::duration<double>(static_cast<double>(read.length) / rate_);
    idle_at_ = std::max(idle_at_, Clock::now()) + std::chrono::duration_cast<Clock::duration>(takes);
    due_[read.tag] = idle_at_;
    inner_->submit(read);
  }

  void wait(std::size_t min_completions, std::vector<DiskCompletion>& done) override {
    const std::size_t before = done.size();
    const std::size_t least = std::min(min_completions, in_flight());
    for (;;) {
      if (inner_->in_flight() > 0) inner_->wait(here_.empty() ? std::min<std::size_t>(least, 1) : 0, here_);
      const Clock::time_point now = Clock::now();
      Clock::time_point next = Clock::time_point::max();
      std::erase_if(here_, [&](const DiskCompletion& one) {
        const auto due = due_.find(one.tag);
        next = std::min(next, due->second <= now ? next : due->second);
        if (due->second > now) return false;
        due_.erase(due);
        done.push_back(one);
        return true;
      });
      if (done.size() - before >= least) return;
      if (next != Clock::time_point::max()) std::this_thread::sleep_until(next);
    }
  }

  std::size_t in_flight() const override { return inner_->in_flight() + here_.size(); }
  DiskCounters counters() const override { return inner_->counters(); }
  std::string name() const override { return inner_->name(); }

 private:
  using Clock = std::chrono::steady_clock;
  std::unique_ptr<DiskReader> inner_;
  const double rate_;
  Clock::time_point idle_at_ = Clock::now();
  std::map<std::uint64_t, Clock::time_point> due_;  // by tag
  std::vector<DiskCompletion> here_;                // before they are due
};

class PrefetchWaste : public PrefetchTest {
 protected:
  PrefetchWaste() : PrefetchTest(256) {
    const Engine engine(*checkpoint_, model_, resolve(options_, *checkpoint_, model_));
    expert_ = engine.report().experts.sizes().bytes({0, 0}).full;
  }

  // A prompt of 8 tokens, then `steps` more, one by one.
  static std::vector<std::uint64_t> hashes(Engine& engine, std::size_t steps) {
    std::vector<std::uint64_t> all;
    const auto sequence = engine.new_sequence();
    std::vector<tokenizer::TokenId> prompt;
    for (std::size_t i = 0; i < 8; ++i) prompt.push_back(static_cast<tokenizer::TokenId>(i * 41 + 7));
    engine.prefill(*sequence, prompt,
                   {[](std::size_t) { return false; }, [](std::size_t, std::span<const float>) {}});
    for (std::size_t i = 0; i < steps; ++i) all.push_back(next(engine, *sequence, i));
    return all;
  }

  Bytes expert_ = 0;
};

TEST_F(PrefetchWaste, WhatWasReadIsUsefulOrWasted) {
  for (const std::size_t experts : {12, 48, 100})
    for (const std::string prefetch : {"none", "stream", "all-next"}) {
      SCOPED_TRACE(prefetch + ", " + std::to_string(experts) + " experts kept");
      EngineOptions options = options_;
      options.prefetch = prefetch;
      options.cache_bytes = experts * expert_;
      Engine engine(*checkpoint_, model_, resolve(options, *checkpoint_, model_));
      hashes(engine, 60);
      const Statistics& statistics = engine.statistics();
      for (const ExpertStatistics& phase : {statistics.prefill, statistics.decode, statistics.total()}) {
        EXPECT_EQ(phase.useful_bytes() + phase.wasted_bytes(), phase.read());
        EXPECT_LE(phase.prefetch_used, phase.prefetch_bytes);
      }
      EXPECT_GT(statistics.decode.useful_bytes(), 0u);
      const fetch::ExpertCounters counters = engine.report().experts.counters();
      EXPECT_EQ(statistics.total().wasted_bytes(), counters.prefetch.wasted_bytes);
      EXPECT_EQ(statistics.total().prefetch_used, counters.prefetch.used_bytes);
      if (prefetch == "none") {
        EXPECT_EQ(statistics.total().wasted_bytes(), 0u);
      }
      if (prefetch == "all-next") {
        EXPECT_GT(statistics.total().wasted_bytes(), 0u);
      }
    }
}

// Where whole layers are read, experts that no token chose are read in vain, whether on demand or ahead. No
// cache: a step needs 4 of the 32 experts of each of 6 layers.
TEST_F(PrefetchWaste, ExpertsThatNoTokenChoseAreWasted) {
  constexpr std::size_t kSteps = 40;
  for (const std::string prefetch : {"none", "all-next"}) {
    SCOPED_TRACE(prefetch);
    EngineOptions options = options_;
    options.preset = "z-deepspeed";
    options.cache = "none";
    options.prefetch = prefetch;
    Engine engine(*checkpoint_, model_, resolve(options, *checkpoint_, model_));
    hashes(engine, kSteps);
    const ExpertStatistics& decode = engine.statistics().decode;
    EXPECT_EQ(decode.useful_bytes() + decode.wasted_bytes(), decode.read());
    EXPECT_EQ(decode.useful_bytes(), kSteps * 6 * 4 * expert_);
    EXPECT_EQ(decode.unchosen_bytes, kSteps * 6 * 28 * expert_);
  }
}

// What a step needs from the disk does not depend on what was read ahead.
TEST_F(PrefetchWaste, UsefulBytesAreThoseThatAreReadWithoutReadAhead) {
  std::vector<Bytes> useful;
  for (const std::string prefetch : {"none", "stream"}) {
    EngineOptions options = options_;
    options.prefetch = prefetch;
    options.cache_bytes = 48 * expert_;  // what a budget leaves depends on how the process has grown
    Engine engine(*checkpoint_, model_, resolve(options, *checkpoint_, model_));
    hashes(engine, 60);
    useful.push_back(engine.statistics().decode.useful_bytes());
  }
  EXPECT_EQ(useful[0], useful[1]);
}

TEST_F(PrefetchWaste, StopsWhereTheDiskIsTheLimitAndTheTextIsTheSame) {
  constexpr std::size_t kTokens = 120, kSeen = 40;
  options_.cache_bytes = 60 * expert_;
  std::vector<std::uint64_t> expected;
  {
    EngineOptions none = options_;
    none.prefetch = "none";
    Engine engine(*checkpoint_, model_, resolve(none, *checkpoint_, model_));
    expected = hashes(engine, kTokens);
  }
  options_.prefetch = "stream";
  options_.fetch.wrap_reader = [](std::unique_ptr<DiskReader> inner) {
    return std::make_unique<PacedReader>(std::move(inner), kBytesPerSecond);
  };
  Engine engine(*checkpoint_, model_, resolve(options_, *checkpoint_, model_));
  EXPECT_EQ(hashes(engine, kSeen), std::vector(expected.begin(), expected.begin() + kSeen));
  const ExpertStatistics first = engine.statistics().decode;
  EXPECT_GT(first.wasted_bytes(), 0u);
  EXPECT_EQ(hashes(engine, kTokens), expected);
  const ExpertStatistics all = engine.statistics().decode;
  const auto share = [](Bytes wasted, Bytes useful) {
    return static_cast<double>(wasted) / static_cast<double>(useful);
  };
  const double later =
      share(all.wasted_bytes() - first.wasted_bytes(), all.useful_bytes() - first.useful_bytes());
  RecordProperty("wasted_share_later", std::to_string(later));
  EXPECT_LT(later, 0.1);
  EXPECT_GT(engine.statistics().prefetch_paused, kTokens);  // events of which a step has six
  ASSERT_NE(engine.report().prefetch_trial(), nullptr);
  EXPECT_FALSE(engine.report().prefetch_trial()->pays());
}

}  // namespace
}  // namespace sluice::engine
