#include "lab/replay/replay.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <list>
#include <map>
#include <random>
#include <set>

#include "base/error.h"
#include "experts/device_caches.h"
#include "experts/registry.h"
#include "lab/replay/made_up_trace.h"

namespace sluice::lab {
namespace {

using experts::ExpertId;

// LRU as LAB.md states it, naively: the expert used longest ago leaves, then the lower id.
struct NaiveLru {
  std::map<std::pair<int, int>, std::uint64_t> used;  // (layer, id) -> event
  Bytes held = 0, capacity = 0, bytes_read = 0;
  std::uint64_t hits = 0, accesses = 0, evictions = 0, event = 0;

  template <class Size>
  void step(std::span<const ExpertId> ids, Size&& size, const trace::TraceSizes& sizes) {
    std::vector<ExpertId> misses;
    for (ExpertId id : ids) {
      ++accesses;
      const auto at = used.find({id.layer, id.index});
      if (at == used.end()) misses.push_back(id);
      if (at != used.end()) ++hits, at->second = event;
    }
    for (ExpertId id : misses) {
      bytes_read += sizes.disk_bytes(id);
      if (size(id) > capacity) continue;
      std::vector<std::pair<std::uint64_t, std::pair<int, int>>> victims;
      for (const auto& [other, when] : used)
        if (when != event) victims.push_back({when, other});
      std::sort(victims.begin(), victims.end());
      Bytes room = capacity - held;
      std::size_t count = 0;
      while (room < size(id) && count < victims.size()) {
        const auto& v = victims[count++].second;
        room += size({static_cast<std::uint16_t>(v.first), static_cast<std::uint16_t>(v.second)});
      }
      if (room < size(id)) continue;
      for (std::size_t i = 0; i < count; ++i) used.erase(victims[i].second), ++evictions;
      held = capacity - room + size(id);
      used[{id.layer, id.index}] = event;
    }
    ++event;
  }
};

TEST(Replay, LruAgreesWithASlowOneInEveryScopeAndUnit) {
  for (std::uint64_t seed = 1; seed <= 6; ++seed) {
    MadeUpTrace trace(seed, 80);
    const trace::TraceSizes sizes = *trace.header().sizes;
    const Requests requests = read_requests(trace);
    EXPECT_EQ(requests.steps, 80u);
    EXPECT_EQ(requests.prefill_steps, 8u);
    for (const Scope scope : {Scope::kLayer, Scope::kGlobal})
      for (const CapacityUnit unit : {CapacityUnit::kExperts, CapacityUnit::kBytes})
        for (const std::uint64_t capacity : {0u, 2u, 5u, 17u, 60u, 200u}) {
          SCOPED_TRACE("seed " + std::to_string(seed) + " capacity " + std::to_string(capacity));
          std::vector<NaiveLru> naive(scope == Scope::kLayer ? 3 : 1);
          for (NaiveLru& cache : naive) cache.capacity = capacity;
          for (std::size_t e = 0; e < requests.events.size(); ++e)
            naive[scope == Scope::kLayer ? requests.events[e].layer : 0].step(
                requests.list.event(e),
                [&](ExpertId id) { return unit == CapacityUnit::kExperts ? 1 : sizes.bytes(id).full; },
                sizes);
          const ReplayResult result =
              replay(requests, 3, &sizes,
                     {.cache = "lru", .scope = scope, .unit = unit, .capacity = capacity, .window = 7});
          std::uint64_t hits = 0, accesses = 0, evictions = 0, read = 0;
          for (const NaiveLru& cache : naive)
            hits += cache.hits, accesses += cache.accesses, evictions += cache.evictions,
                read += cache.bytes_read;
          EXPECT_EQ(result.total.hits, hits);
          EXPECT_EQ(result.total.accesses, accesses);
          EXPECT_EQ(result.evictions, evictions);
          EXPECT_EQ(*result.bytes_read, read);
          std::uint64_t windowed = 0;
          for (const ReplayWindow& window : result.windows) windowed += window.counts.hits;
          EXPECT_EQ(windowed, hits);
          EXPECT_EQ(result.windows.size(), 12u);
          EXPECT_EQ(result.windows.back().steps, 3u);
          EXPECT_LT(result.decode.accesses, accesses);
        }
  }
}

// Two builds that decide alike have the same hash; these are what every build has had.
TEST(Replay, DecidesAsItHasAlwaysDecided) {
  MadeUpTrace trace(9, 200);
  const Requests requests = read_requests(trace);
  const std::map<std::string, std::pair<std::uint64_t, std::uint64_t>> known = {
      {"lru", {972995637936206126u, 3838282314346647763u}},
      {"lfu", {3659116834202281229u, 12329152870136194347u}},
      {"fifo", {7300771078759177346u, 11204660654854736483u}},
      {"marking", {14386365538677101880u, 14594257094222526942u}},
      {"belady_bypass", {7650184759015160479u, 1977486579260980193u}}};
  for (const auto& [cache, hashes] : known) {
    const auto hash = [&](Scope scope, std::uint64_t capacity) {
      return replay(requests, 3, nullptr, {.cache = cache, .scope = scope, .capacity = capacity, .seed = 4})
          .decision_hash;
    };
    EXPECT_EQ(hash(Scope::kLayer, 5), hashes.first) << cache;
    EXPECT_EQ(hash(Scope::kGlobal, 15), hashes.second) << cache;
  }
}

TEST(Replay, EveryCacheGivesTheSameLogTwiceAndNoneBeatsTheOracle) {
  MadeUpTrace trace(9, 200);
  const Requests requests = read_requests(trace);
  for (const Scope scope : {Scope::kLayer, Scope::kGlobal}) {
    const std::uint64_t capacity = scope == Scope::kLayer ? 5 : 15;
    const ReplayResult best =
        replay(requests, 3, nullptr, {.cache = "belady_bypass", .scope = scope, .capacity = capacity});
    EXPECT_FALSE(best.bytes_read.has_value());
    for (const experts::CachePolicy& policy : experts::cache_policies()) {
      if (policy.sliced) continue;  // a trace of whole experts has no slices
      SCOPED_TRACE(policy.name);
      // Such a replay has no scores, and tells no cache what to begin with.
      if (policy.scores != experts::CacheScores::kNone || !experts::why_for_a_device(policy).empty()) {
        EXPECT_THROW(replay(requests, 3, nullptr,
                            {.cache = std::string(policy.name), .scope = scope, .capacity = capacity}),
                     Error);
        continue;
      }
      std::string logs[2];
      std::uint64_t hashes[2];
      for (int run = 0; run < 2; ++run) {
        const ReplayResult result =
            replay(requests, 3, nullptr,
                   {.cache = std::string(policy.name),
                    .scope = scope,
                    .capacity = capacity,
                    .seed = 4,
                    .pools = policy.pooled ? std::optional(experts::PoolSlots{2, 1, 1, 1}) : std::nullopt},
                   [&](std::string_view line) { logs[run] += line; });
        EXPECT_LE(result.total.hits, best.total.hits);
        EXPECT_EQ(result.total.hits > 0, policy.keeps);
        hashes[run] = result.decision_hash;
      }
      EXPECT_EQ(logs[0], logs[1]);
      EXPECT_EQ(hashes[0], hashes[1]);
      EXPECT_EQ(static_cast<std::size_t>(std::count(logs[0].begin(), logs[0].end(), '\n')),
                requests.events.size() + 2);
    }
  }
}

TEST(Replay, WithRoomForAllOnlyFirstUsesMiss) {
  MadeUpTrace trace(3, 50);
  const Requests requests = read_requests(trace);
  std::set<ExpertId> distinct;
  for (std::size_t e = 0; e < requests.list.events(); ++e)
    for (ExpertId id : requests.list.event(e)) distinct.insert(id);
  for (const Scope scope : {Scope::kLayer, Scope::kGlobal}) {
    const ReplayResult result =
        replay(requests, 3, nullptr, {.cache = "lfu", .scope = scope, .capacity = 36});
    EXPECT_EQ(result.total.misses(), distinct.size());
    EXPECT_EQ(result.evictions, 0u);
  }
}

TEST(Replay, TokensOfAnExpertAreCounted) {
  MadeUpTrace trace(5, 1);
  const Requests requests = read_requests(trace);
  std::uint64_t tokens = 0;
  for (const std::uint32_t count : requests.tokens) tokens += count;
  EXPECT_EQ(tokens, 3u * 4 * 3);  // layers × tokens × top k
  EXPECT_EQ(requests.tokens.size(), requests.list.accesses());
}

TEST(Replay, WhatIsNotKnownIsAUsageError) {
  MadeUpTrace trace(5, 1);
  const trace::TraceSizes none(3, 12);
  const Requests requests = read_requests(trace);
  EXPECT_THROW(replay(requests, 3, nullptr, {.cache = "lru", .unit = CapacityUnit::kBytes, .capacity = 9}),
               Error);
  EXPECT_THROW(replay(requests, 3, &none, {.cache = "lru", .unit = CapacityUnit::kBytes, .capacity = 9}),
               Error);
  EXPECT_THROW(replay(requests, 3, nullptr, {.cache = "zip-pools", .capacity = 9}), Error);
  EXPECT_THROW(
      replay(requests, 3, nullptr, {.cache = "lru", .capacity = 9, .pools = experts::PoolSlots{1, 0, 0, 0}}),
      Error);
  EXPECT_THROW(replay(requests, 3, nullptr,
                      {.cache = "zip-pools", .capacity = 1, .pools = experts::PoolSlots{2, 0, 0, 0}}),
               Error);
  // Every slot counts one, in any state.
  const auto pooled = [&](experts::PoolSlots slots, Scope scope, std::uint64_t capacity) {
    return replay(requests, 3, nullptr,
                  {.cache = "zip-pools", .scope = scope, .capacity = capacity, .pools = slots});
  };
  EXPECT_THROW(pooled({0, 0, 0, 5}, Scope::kLayer, 1), Error);
  EXPECT_THROW(pooled({0, 0, 0, 5}, Scope::kGlobal, 14), Error);
  EXPECT_NO_THROW(pooled({0, 0, 0, 5}, Scope::kLayer, 5));
  EXPECT_NO_THROW(pooled({0, 0, 0, 5}, Scope::kGlobal, 15));
  EXPECT_EQ(replay({}, 3, nullptr, {.cache = "lru", .capacity = 9}).total.hit_rate(), 0.0);
}

TEST(Replay, CanBeStopped) {
  MadeUpTrace trace(5, 10);
  EXPECT_THROW(read_requests(trace, [] { return true; }), Error);
  const Requests requests = read_requests(trace);
  EXPECT_THROW(replay(requests, 3, nullptr, {.cache = "lru", .capacity = 9}, {}, [] { return true; }), Error);
}

}  // namespace
}  // namespace sluice::lab
