// Experts that a cache brings in though the event does not use them: a toy of DALI's workload window (SPEC
// §3.5), which swaps once a window, and the rules that Residency holds any cache to.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>

#include "experts/cache/event_cache.h"
#include "experts/cache/residency.h"
#include "experts/decision_log.h"

namespace sluice::experts::residency_updates_test {
namespace {

using testing::ElementsAre;

class Equal final : public ExpertSizes {
 public:
  ExpertBytes bytes(ExpertId) const override { return {.full = 10}; }
};

constexpr ExpertId id(std::uint16_t index) { return {0, index}; }

// Holds a fixed number of experts. Every `window` events the least used of them leave for the most used
// others, if these were used more; nothing else moves.
class ToyWindow final : public EventCache {
 public:
  ToyWindow(std::uint32_t window, std::vector<ExpertId> first) : window_(window), start_(std::move(first)) {}

  bool decide_event(const StepReport& report, const ExpertSizes&, Bytes, EventDecision& out) override {
    for (std::size_t i = 0; i < report.used.size(); ++i) work_[report.used[i]] += report.tokens[i];
    if (report.event == 0)
      for (ExpertId one : start_) bring(one, report, out);
    if ((report.event + 1) % window_ != 0) return true;
    for (;;) {
      const auto less = [&](ExpertId a, ExpertId b) { return work_[a] < work_[b]; };
      const auto out_ = std::ranges::min_element(held_, less);
      ExpertId best = *out_;
      for (const auto& [one, tokens] : work_)
        if (std::ranges::find(held_, one) == held_.end() && tokens > work_[best]) best = one;
      if (best == *out_) break;
      out.victims.push_back({*out_, Part::kFull});
      held_.erase(out_);
      bring(best, report, out);
    }
    work_.clear();
    return true;
  }
  std::string name() const override { return "toy-window"; }

 private:
  void bring(ExpertId one, const StepReport& report, EventDecision& out) {
    const bool used = std::ranges::find(report.used, one) != report.used.end();
    (used ? out.placed : out.fetched).push_back({one, Part::kFull});
    held_.push_back(one);
  }

  std::uint32_t window_;
  std::vector<ExpertId> start_, held_;
  std::map<ExpertId, std::uint64_t> work_;
};

TEST(Updates, AWindowSwapsExpertsThatTheEventDoesNotUse) {
  const Equal sizes;
  Residency cache(std::make_unique<ToyWindow>(3, std::vector{id(0), id(1)}), sizes, 20, Tier::kDevice);
  EXPECT_EQ(cache.tier(), Tier::kDevice);
  const auto event = [&](std::vector<ExpertId> ids,
                         std::vector<std::uint32_t> tokens) -> const EventOutcome& {
    return cache.on_event(ids, {}, tokens);
  };
  const EventOutcome& first = event({id(0), id(4)}, {1, 2});
  EXPECT_EQ(first.tier, Tier::kDevice);
  ASSERT_EQ(first.updates.size(), 1u);  // 0 is used: it is placed
  EXPECT_EQ(first.updates[0].id, id(1));
  EXPECT_EQ(first.updates[0].before, Parts());
  EXPECT_EQ(first.updates[0].parts, Parts(Part::kFull));
  EXPECT_TRUE(event({id(5)}, {9}).updates.empty());
  EXPECT_TRUE(cache.parts(id(5)).empty());
  const EventOutcome& swap = event({id(0)}, {4});  // work: 0 5, 1 0, 4 2, 5 9
  ASSERT_EQ(swap.evicted.size(), 1u);
  EXPECT_EQ(swap.evicted[0].id, id(1));
  ASSERT_EQ(swap.updates.size(), 1u);
  EXPECT_EQ(swap.updates[0].id, id(5));
  EXPECT_EQ(cache.used(), 20u);
  std::string line;
  append_decision(line, 2, 0, swap);
  EXPECT_EQ(line, "2 0 hit 0 out 0/1=full update 0/5=full\n");
}

// Brings in what a test says.
class Scripted final : public EventCache {
 public:
  bool decide_event(const StepReport& report, const ExpertSizes&, Bytes, EventDecision& out) override {
    if (decide) decide(report, out);
    return true;
  }
  std::string name() const override { return "scripted"; }
  std::function<void(const StepReport&, EventDecision&)> decide;
};

TEST(Updates, ShowInTheHashOfDecisions) {
  const Equal sizes;
  std::vector<std::uint64_t> hashes;
  for (const int fetched : {-1, 3, 4}) {
    auto cache = std::make_unique<Scripted>();
    cache->decide = [&](const StepReport&, EventDecision& out) {
      if (fetched >= 0) out.fetched.push_back({id(static_cast<std::uint16_t>(fetched)), Part::kFull});
    };
    Residency residency(std::move(cache), sizes, 10);
    residency.on_event(std::vector{id(0)});
    hashes.push_back(residency.decision_hash());
  }
  std::ranges::sort(hashes);
  EXPECT_EQ(std::ranges::adjacent_find(hashes), hashes.end());
}

TEST(UpdatesDeath, WhatIsUsedOrGainsNothingOrDoesNotFitIsNoUpdate) {
  const Equal sizes;
  auto owned = std::make_unique<Scripted>();
  Scripted& cache = *owned;
  Residency residency(std::move(owned), sizes, 10);
  cache.decide = [](const StepReport&, EventDecision& out) { out.fetched.push_back({id(0), Part::kFull}); };
  EXPECT_DEATH(residency.on_event(std::vector{id(0)}), "which is used: it must be placed");
  residency.on_event(std::vector{id(1)});
  EXPECT_DEATH(residency.on_event(std::vector{id(1)}), "which gains nothing");
  cache.decide = [](const StepReport&, EventDecision& out) { out.fetched.push_back({id(2), Part::kFull}); };
  EXPECT_DEATH(residency.on_event(std::vector{id(1)}), "20 bytes in a cache of 10");
}

}  // namespace
}  // namespace sluice::experts::residency_updates_test
