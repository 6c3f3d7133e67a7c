#include "lab/replay/routed_replay.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <iostream>
#include <map>
#include <numeric>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "base/error.h"
#include "lab/replay/made_up_trace.h"

namespace sluice::lab::routed_replay_test {
namespace {

constexpr std::uint32_t kLayers = 2, kExperts = 12, kTopK = 3;

// An invented trace with the logits of all experts, one token a step; every tenth step is a prompt.
class LogitTrace final : public trace::RoutingTrace {
 public:
  LogitTrace(std::uint64_t seed, std::uint64_t steps)
      : RoutingTrace("made up"), random_(seed), steps_(steps) {
    header_.layers = kLayers;
    header_.experts = kExperts;
    header_.top_k = kTopK;
    header_.logits = true;
  }
  bool next(trace::TraceEvent& event) override {
    if (step_ == steps_) return false;
    std::normal_distribution<float> normal;
    for (std::uint32_t e = 0; e < kExperts; ++e) logits_[e] = normal(random_);
    std::array<std::uint16_t, kExperts> best;
    std::iota(best.begin(), best.end(), std::uint16_t{0});
    std::ranges::stable_sort(best, std::ranges::greater{}, [&](std::uint16_t e) { return logits_[e]; });
    std::sort(best.begin(), best.begin() + kTopK);
    for (std::uint32_t i = 0; i < kTopK; ++i) choices_[i] = {.expert = best[i]};
    event = {.step = step_,
             .layer = layer_,
             .phase = step_ % 10 == 0 ? trace::TracePhase::kPrefill : trace::TracePhase::kDecode,
             .tokens = 1,
             .choices = choices_,
             .begin = begin_,
             .logits = logits_,
             .sequences = {},
             .token_ids = {}};
    if (++layer_ == kLayers) layer_ = 0, ++step_;
    return true;
  }

 private:
  std::mt19937_64 random_;
  std::uint64_t steps_, step_ = 0;
  std::uint32_t layer_ = 0;
  std::array<float, kExperts> logits_;
  std::array<experts::Choice, kTopK> choices_;
  std::array<std::uint32_t, 2> begin_ = {0, kTopK};
};

// SPEC 2.2 for one token, word for word, and an LRU of one layer that counts experts.
struct NaiveLayer {
  std::map<int, std::uint64_t> used;  // resident experts -> the event that used them last
  std::size_t capacity = 0;
  std::uint64_t hits = 0, accesses = 0, event = 0, substituted = 0;

  std::set<int> route(std::span<const float> logits, double alpha, bool prompt) {
    std::vector<double> s(logits.begin(), logits.end());
    for (double& x : s) x = std::exp(x);
    std::vector<int> order(s.size());
    std::iota(order.begin(), order.end(), 0);
    std::ranges::stable_sort(order, std::ranges::greater{}, [&](int e) { return s[static_cast<size_t>(e)]; });
    const std::set<int> own(order.begin(), order.begin() + kTopK);
    if (prompt) return own;
    const double beta = s[static_cast<std::size_t>(order[kTopK])];
    std::set<int> chosen;
    std::vector<int> missing, near;
    for (int i = 0; i < static_cast<int>(kExperts); ++i) {
      const int e = order[static_cast<std::size_t>(i)];
      const double score = s[static_cast<std::size_t>(e)];
      if (i < static_cast<int>(kTopK)) {
        if (score > (1 + alpha) * beta || used.contains(e))
          chosen.insert(e);
        else
          missing.push_back(e);
      } else if (score >= (1 - alpha) * beta && used.contains(e)) {
        near.push_back(e);
      }
    }
    const std::size_t replaced = std::min(missing.size(), near.size());
    for (std::size_t i = 0; i < replaced; ++i) chosen.insert(near[i]);
    for (std::size_t i = 0; i + replaced < missing.size(); ++i) chosen.insert(missing[i]);
    substituted += replaced;
    return chosen;
  }

  void take(const std::set<int>& chosen) {
    accesses += chosen.size();
    for (const int e : chosen)
      if (used.contains(e)) ++hits, used[e] = event;
    for (const int e : chosen) {
      if (used.contains(e)) continue;
      if (used.size() == capacity)
        used.erase(std::ranges::min_element(
            used, {}, [](const auto& one) { return std::pair(one.second, one.first); }));
      used[e] = event;
    }
    ++event;
  }
};

TEST(RoutedReplay, SmoeAgreesWithASlowOne) {
  std::uint64_t substituted = 0;
  for (std::uint64_t seed = 1; seed <= 4; ++seed)
    for (const double alpha : {0.0, 0.1, 0.4, 1.2})
      for (const std::size_t capacity : {3u, 5u, 8u}) {
        SCOPED_TRACE("seed " + std::to_string(seed) + " alpha " + std::to_string(alpha) + " capacity " +
                     std::to_string(capacity));
        std::vector<NaiveLayer> naive(kLayers);
        for (NaiveLayer& layer : naive) layer.capacity = capacity;
        LogitTrace walked(seed, 60), trace(seed, 60);
        trace::TraceEvent event;
        while (walked.next(event))
          naive[event.layer].take(
              naive[event.layer].route(event.logits, alpha, event.phase == trace::TracePhase::kPrefill));
        const RoutedReplayResult result =
            replay_routed(trace, nullptr, {.cache = "lru", .scope = Scope::kLayer, .capacity = capacity},
                          {.router = "smoe", .smoe = {.alpha = alpha}});
        std::uint64_t hits = 0, accesses = 0, replaced = 0;
        for (const NaiveLayer& layer : naive)
          hits += layer.hits, accesses += layer.accesses, replaced += layer.substituted;
        EXPECT_EQ(result.caches.total.hits, hits);
        EXPECT_EQ(result.caches.total.accesses, accesses);
        EXPECT_EQ(result.routing.all.substituted, replaced);
        EXPECT_EQ(result.routing.recorded_differs, 0u);
        EXPECT_EQ(result.routing.decode.tokens, 54u * kLayers);
        if (alpha == 0) {
          EXPECT_EQ(replaced, 0u);
        }
        substituted += replaced;
      }
  EXPECT_GT(substituted, 1000u);
  std::cout << substituted << " experts substituted\n";
}

// With alpha 0 and with the recorded choices it is the replay that reads choices alone.
TEST(RoutedReplay, WithoutAlphaItIsTheReplayOfChoices) {
  for (const ReplayRouter& router : {ReplayRouter{}, ReplayRouter{.router = "smoe", .smoe = {.alpha = 0}}})
    for (const char* const cache : {"lru", "lfu", "marking", "workload-window"})
      for (const Scope scope : {Scope::kLayer, Scope::kGlobal}) {
        SCOPED_TRACE(std::string(cache) + " " + std::string(router.router.name()));
        const ReplaySettings settings{.cache = cache, .scope = scope, .capacity = 7, .seed = 3, .window = 20};
        LogitTrace trace(5, 80), again(5, 80);
        std::string one, two;
        const ReplayResult plain = replay(read_requests(trace), kLayers, nullptr, settings,
                                          [&](std::string_view line) { one += line; });
        const ReplayResult routed =
            replay_routed(again, nullptr, settings, router, [&](std::string_view line) {
              two += line;
            }).caches;
        EXPECT_EQ(one, two);
        EXPECT_EQ(plain.total.hits, routed.total.hits);
        EXPECT_EQ(plain.decode.accesses, routed.decode.accesses);
        EXPECT_EQ(plain.evictions, routed.evictions);
        EXPECT_EQ(plain.windows.size(), routed.windows.size());
      }
}

TEST(RoutedReplay, CachesMayGoByScores) {
  std::set<std::uint64_t> hashes;
  for (const char* const cache : {"lru", "score-window", "hybrimoe", "d-hybrimoe"}) {
    LogitTrace trace(9, 200);
    hashes.insert(replay_routed(trace, nullptr, {.cache = cache, .capacity = 5}, {}).caches.decision_hash);
  }
  EXPECT_EQ(hashes.size(), 4u);
}

TEST(RoutedReplay, RefusesWhatCannotBe) {
  const auto refuse = [](trace::RoutingTrace&& trace, const char* cache, const ReplayRouter& router,
                         const std::string& says) {
    try {
      replay_routed(trace, nullptr, {.cache = cache, .capacity = 5}, router);
      ADD_FAILURE() << says;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kUsage);
      EXPECT_NE(std::string(error.what()).find(says), std::string::npos) << error.what();
    }
  };
  const ReplayRouter smoe{.router = "smoe"};
  refuse(MadeUpTrace(1, 10), "lru", smoe, "scores of experts that were not chosen");
  refuse(MadeUpTrace(1, 10), "score-window", {}, "the trace has none");
  refuse(LogitTrace(1, 10), "belady", smoe, "depends on what it holds");
  refuse(LogitTrace(1, 10), "lru", {.router = "cache-prior"}, "exact or smoe");
  refuse(LogitTrace(1, 10), "lru", {.router = "smoe", .smoe = {.alpha = -1}}, "at least 0");
  refuse(LogitTrace(1, 10), "static-layers", smoe, "device");
}

}  // namespace
}  // namespace sluice::lab::routed_replay_test
