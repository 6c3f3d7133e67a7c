// Properties that every cache policy must have: iterates over the registry, so that no policy escapes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <map>
#include <random>
#include <set>

#include "base/error.h"
#include "experts/cache/cache_policies.h"
#include "experts/cache/residency.h"
#include "experts/core/pools.h"
#include "experts/core/requests.h"
#include "experts/placement/placement.h"
#include "experts/prefetch/prefetch.h"
#include "experts/presets.h"
#include "experts/registry.h"
#include "experts/schedule/scheduler.h"
#include "experts/test_traces.h"

namespace sluice::experts {
namespace {

class EveryCache : public testing::TestWithParam<CachePolicy> {};

INSTANTIATE_TEST_SUITE_P(Registry, EveryCache,
                         testing::ValuesIn(cache_policies().begin(), cache_policies().end()),
                         [](const auto& info) {
                           std::string name(info.param.name);
                           std::ranges::replace(name, '-', '_');
                           return name;
                         });

// Slots that fit in any case: all experts full where there is room for all, else pools of all kinds.
PoolSlots slots_for(const TestSizes& sizes, Bytes capacity) {
  if (capacity >= sizes.total()) return {.f = sizes.experts()};
  Bytes largest = 1;
  std::uint32_t layers = 1;
  for (std::uint32_t i = 0; i < sizes.experts(); ++i) {
    const ExpertBytes bytes = sizes.bytes(TestSizes::id(i));
    largest = std::max({largest, bytes.full, bytes.sm + bytes.exp});
    layers = TestSizes::id(i).layer + 1u;
  }
  const auto slots = static_cast<std::uint32_t>(capacity / (largest * layers));
  return {.f = (slots + 3) / 4, .c = (slots + 2) / 4, .s = (slots + 1) / 4, .e = slots / 4};
}

constexpr Parts kSlices = Part::kMsb | Part::kLsb;

Residency make(const CachePolicy& policy, const TestSizes& sizes, Bytes capacity, const RequestList* future,
               Parts keep = Part::kFull, std::uint64_t seed = 7) {
  CacheConfig config{.keep = policy.sliced ? kSlices : keep, .seed = seed, .future = future};
  if (policy.pooled) {
    config.pools = {.slots = {slots_for(sizes, capacity)},
                    .rules = {.delta = static_cast<std::uint32_t>(capacity % 3),
                              .demotion = std::array{Demotion::kNone, Demotion::kRoom,
                                                     Demotion::kRank}[capacity / 3 % 3]}};
  }
  return Residency(make_cache(policy.name, config), sizes, capacity);
}

Residency make(const CachePolicy& policy, const TestSizes& sizes, Bytes capacity, const RequestList& trace,
               Parts keep = Part::kFull, std::uint64_t seed = 7) {
  return make(policy, sizes, capacity, policy.oracle ? &trace : nullptr, keep, seed);
}

// The next event. For slices it has made-up scores, critical experts and prompts, which depend on the event
// alone.
const EventOutcome& drive(Residency& residency, const CachePolicy& policy, std::span<const ExpertId> ids) {
  if (!policy.sliced) return residency.on_event(ids);
  std::mt19937_64 random(residency.events() + 1);
  std::vector<ExpertId> ranked(ids.begin(), ids.end()), critical;
  std::ranges::sort(ranked);
  std::vector<std::uint32_t> tokens(ids.size(), 3), critical_tokens;
  for (ExpertId id : ranked) {
    if (random() % 2 == 0) critical.push_back(id);
    critical_tokens.push_back(static_cast<std::uint32_t>(random() % 4));
  }
  std::ranges::shuffle(ranked, random);
  return residency.on_event(ids, {}, tokens,
                            {.ranked = ranked,
                             .critical = critical,
                             .prompt = residency.events() / 10 % 3 == 1,
                             .critical_tokens = critical_tokens,
                             .lsb_allowance = random() % 20});
}

// Runs `check(residency, event)` over random traces: experts of equal and of different sizes, every capacity
// from nothing to everything, events from empty to larger than the cache.
template <class Check>
void over_random_runs(Check&& check) {
  for (std::uint64_t seed = 1; seed <= 12; ++seed) {
    for (TestSizes::Kind kind : {TestSizes::Kind::kEqual, TestSizes::Kind::kDifferent}) {
      SCOPED_TRACE("seed " + std::to_string(seed) +
                   (kind == TestSizes::Kind::kEqual ? ", equal" : ", different") + " sizes");
      const std::uint32_t experts = seed == 1 ? 1 : static_cast<std::uint32_t>(3 + seed);
      const TestSizes sizes(experts, kind, seed);
      const RequestList trace = random_trace(experts, 120, seed % 3 == 0 ? experts : 4, seed * 31);
      for (Bytes capacity = 0; capacity <= sizes.total() + 1; ++capacity) {
        SCOPED_TRACE("capacity " + std::to_string(capacity));
        check(sizes, trace, capacity);
        if (testing::Test::HasFailure()) return;
      }
    }
  }
}

std::vector<ExpertId> ids_of(const std::vector<Admission>& admissions) {
  std::vector<ExpertId> ids;
  for (const Admission& a : admissions) ids.push_back(a.id);
  return ids;
}

Parts asked_of(const EventOutcome& outcome, ExpertId id) {
  for (const std::vector<Admission>* used : {&outcome.hits, &outcome.misses})
    for (const Admission& one : *used)
      if (one.id == id) return one.asked;
  return {};
}

TEST_P(EveryCache, NameIsTheRegistrys) {
  const RequestList trace;
  const TestSizes sizes(1, TestSizes::Kind::kEqual, 1);
  EXPECT_EQ(make(GetParam(), sizes, 1, trace).cache().name(), GetParam().name);
  EXPECT_FALSE(GetParam().source.empty());
}

TEST_P(EveryCache, KeepsTheRulesOfTheEvent) {
  over_random_runs([&](const TestSizes& sizes, const RequestList& trace, Bytes capacity) {
    Residency residency = make(GetParam(), sizes, capacity, trace);
    std::map<ExpertId, Parts> before;
    const auto parts_in = [](const std::map<ExpertId, Parts>& resident, ExpertId id) {
      return resident.contains(id) ? resident.at(id) : Parts();
    };
    for (std::size_t e = 0; e < trace.events(); ++e) {
      const std::span<const ExpertId> ids = trace.event(e);
      std::vector<ExpertId> shuffled(ids.rbegin(), ids.rend());
      const EventOutcome& outcome = drive(residency, GetParam(), shuffled);
      EXPECT_TRUE(outcome.trimmed == 0 || GetParam().sliced);
      std::map<ExpertId, Parts> expected = before;
      for (std::size_t i = 0; i < outcome.evicted.size(); ++i) {
        const Eviction& gone = outcome.evicted[i];
        // Victims were resident and leave only once.
        EXPECT_TRUE(!gone.parts.empty() && parts_in(expected, gone.id).has_all(gone.parts));
        expected[gone.id] = expected[gone.id] - gone.parts;
        if (i < outcome.trimmed) before = expected;  // a prompt ended before these
      }

      // Hits and misses are the requests, fixed against the residents before the event.
      const std::vector<ExpertId> hits = ids_of(outcome.hits), misses = ids_of(outcome.misses);
      EXPECT_TRUE(std::ranges::is_sorted(hits) && std::ranges::is_sorted(misses));
      EXPECT_EQ(hits.size() + misses.size(), ids.size());
      for (ExpertId id : ids) {
        const Parts asked = asked_of(outcome, id);
        const bool hit =
            asked.empty() ? is_computable(parts_in(before, id)) : parts_in(before, id).has_all(asked);
        EXPECT_EQ(std::ranges::binary_search(hits, id), hit);
        EXPECT_EQ(std::ranges::binary_search(misses, id), !hit);
      }
      // Victims are not experts of the running event, unless the policy judges whole events.
      for (const Eviction& gone : outcome.evicted) {
        EXPECT_TRUE(GetParam().pooled || GetParam().sliced || gone.parts == Part::kFull);
        if (!GetParam().judges_events) {
          EXPECT_FALSE(std::ranges::binary_search(ids, gone.id));
        }
      }
      for (ExpertId id : outcome.reduced) {  // other experts whose words leave and whose planes stay
        EXPECT_TRUE(GetParam().pooled && expected[id] == Part::kFull);
        EXPECT_FALSE(std::ranges::binary_search(ids, id));
        expected[id] = Part::kSm;
      }
      // The residents afterwards are exactly the residents before, less victims, plus admissions; legal, and
      // within the capacity.
      for (const std::vector<Admission>* used : {&outcome.hits, &outcome.misses}) {
        for (const Admission& a : *used) {
          EXPECT_EQ(a.before, parts_in(before, a.id));
          EXPECT_TRUE(a.parts.has_all(expected[a.id]));
          // No event compresses exponents.
          EXPECT_FALSE(a.before == Part::kFull && a.parts.has(Part::kExp));
          // Slices: an LSB is useless without its MSB, and kept parts were resident or read.
          EXPECT_EQ(a.view.empty(), !GetParam().sliced);
          if (GetParam().sliced) {
            EXPECT_TRUE(a.view.has(Part::kMsb));
            EXPECT_TRUE((a.before | a.view).has_all(a.parts));
          }
          expected[a.id] = a.parts;
        }
      }
      for (const Update& update : outcome.updates) {  // other experts that come in
        EXPECT_TRUE(GetParam().judges_events && !std::ranges::binary_search(ids, update.id));
        EXPECT_EQ(update.before, parts_in(before, update.id));
        expected[update.id] = update.parts;
      }
      std::erase_if(expected, [](const auto& entry) { return entry.second.empty(); });
      Bytes bytes = 0;
      std::map<ExpertId, Parts> now;
      for (const Placed& a : residency.resident()) {
        EXPECT_TRUE(is_legal(a.parts));
        EXPECT_EQ(residency.parts(a.id), a.parts);
        bytes += sizes.bytes(a.id).of(a.parts);
        now.emplace(a.id, a.parts);
      }
      EXPECT_EQ(now, expected);
      EXPECT_EQ(bytes, residency.used());
      EXPECT_LE(bytes, capacity);
      EXPECT_EQ(residency.events(), e + 1);
      before = std::move(now);
    }
  });
}

TEST_P(EveryCache, StreamsOnlyWhatFindsNoRoom) {
  if (!GetParam().keeps || GetParam().judges_events) return;  // these stream by choice
  over_random_runs([&](const TestSizes& sizes, const RequestList& trace, Bytes capacity) {
    Residency residency = make(GetParam(), sizes, capacity, trace);
    for (std::size_t e = 0; e < trace.events(); ++e) {
      const std::span<const ExpertId> ids = trace.event(e);
      const EventOutcome& outcome = residency.on_event(ids);
      // In ascending order, each miss that could not join must not fit beside the event's ids that were
      // resident by then.
      Bytes pinned = 0;
      for (const Admission& hit : outcome.hits) pinned += sizes.bytes(hit.id).full;
      for (const Admission& miss : outcome.misses) {
        const Bytes size = sizes.bytes(miss.id).full;
        EXPECT_EQ(miss.parts.empty(), pinned + size > capacity);
        if (!miss.parts.empty()) pinned += size;
      }
    }
  });
}

TEST_P(EveryCache, SameSeedSameDecisions) {
  over_random_runs([&](const TestSizes& sizes, const RequestList& trace, Bytes capacity) {
    Residency a = make(GetParam(), sizes, capacity, trace), b = make(GetParam(), sizes, capacity, trace);
    for (std::size_t e = 0; e < trace.events(); ++e) {
      drive(a, GetParam(), trace.event(e));
      std::vector<ExpertId> shuffled(trace.event(e).rbegin(), trace.event(e).rend());
      drive(b, GetParam(), shuffled);
      EXPECT_EQ(a.decision_hash(), b.decision_hash());
    }
  });
}

TEST_P(EveryCache, OtherSeedsMatterOnlyWhereDrawn) {
  const TestSizes sizes(20, TestSizes::Kind::kEqual, 1);
  const RequestList trace = random_trace(20, 300, 3, 5);
  Residency a = make(GetParam(), sizes, 6, trace, Part::kFull, 1),
            b = make(GetParam(), sizes, 6, trace, Part::kFull, 2);
  for (std::size_t e = 0; e < trace.events(); ++e) {
    drive(a, GetParam(), trace.event(e));
    drive(b, GetParam(), trace.event(e));
  }
  EXPECT_EQ(a.decision_hash() != b.decision_hash(), GetParam().seeded);
}

TEST_P(EveryCache, NoFuture) {
  if (GetParam().oracle) return;
  over_random_runs([&](const TestSizes& sizes, const RequestList& trace, Bytes capacity) {
    // The outcome of a prefix is the prefix of the outcome: once with only the prefix to look at, and once
    // with another continuation behind it.
    const std::size_t half = trace.events() / 2;
    RequestList prefix, other;
    for (std::size_t e = 0; e < trace.events(); ++e) {
      if (e < half) prefix.add_event(trace.event(e));
      other.add_event(trace.event(e < half ? e : trace.events() - 1 - e + half));
    }
    auto runs = [&](const RequestList& known) { return make(GetParam(), sizes, capacity, &known); };
    Residency whole = runs(trace), cut = runs(prefix), turned = runs(other);
    for (std::size_t e = 0; e < half; ++e) {
      drive(whole, GetParam(), trace.event(e));
      drive(cut, GetParam(), prefix.event(e));
      drive(turned, GetParam(), other.event(e));
      EXPECT_EQ(cut.decision_hash(), whole.decision_hash());
      EXPECT_EQ(turned.decision_hash(), whole.decision_hash());
    }
  });
}

TEST_P(EveryCache, NoCapacityIsNoCache) {
  const TestSizes sizes(5, TestSizes::Kind::kEqual, 1);
  const RequestList trace = random_trace(5, 50, 5, 3);
  Residency residency = make(GetParam(), sizes, 0, trace);
  for (std::size_t e = 0; e < trace.events(); ++e) {
    const EventOutcome& outcome = drive(residency, GetParam(), trace.event(e));
    EXPECT_TRUE(outcome.hits.empty());
    EXPECT_TRUE(outcome.evicted.empty());
    EXPECT_TRUE(residency.resident().empty());
  }
}

TEST_P(EveryCache, NoIdsIsNoOp) {
  const TestSizes sizes(2, TestSizes::Kind::kEqual, 1);
  RequestList trace;
  trace.add_event(std::vector{TestSizes::id(0)});
  trace.add_event({});
  trace.add_event(std::vector{TestSizes::id(0)});
  Residency residency = make(GetParam(), sizes, 1, trace);
  residency.on_event(trace.event(0));
  const EventOutcome& nothing = residency.on_event({});
  EXPECT_TRUE(nothing.hits.empty() && nothing.misses.empty() && nothing.evicted.empty());
  EXPECT_EQ(residency.events(), 2u);
  EXPECT_EQ(residency.on_event(trace.event(2)).hits.size(), GetParam().keeps ? 1u : 0u);
}

TEST_P(EveryCache, RoomForAllMissesEachOnce) {
  if (!GetParam().keeps) return;
  for (TestSizes::Kind kind : {TestSizes::Kind::kEqual, TestSizes::Kind::kDifferent}) {
    const TestSizes sizes(16, kind, 9);
    const RequestList trace = random_trace(16, 200, 6, 11);
    Residency residency = make(GetParam(), sizes, sizes.total(), trace);
    std::set<ExpertId> seen;
    for (std::size_t e = 0; e < trace.events(); ++e) {
      for (const Admission& miss : residency.on_event(trace.event(e)).misses) {
        EXPECT_TRUE(seen.insert(miss.id).second);
        EXPECT_FALSE(miss.parts.empty());
      }
    }
  }
}

// Compressed, sliced or partial entries obey the same rules; parts that make no view are never a hit.
TEST_P(EveryCache, KeepsThePartsItIsTold) {
  if (GetParam().pooled || GetParam().sliced) return;  // slots or the event decide the parts
  for (Parts keep : {Part::kSm | Part::kExp, Parts(Part::kSm), Parts(Part::kExp), Part::kMsb | Part::kLsb}) {
    const TestSizes sizes(12, TestSizes::Kind::kDifferent, 4);
    const RequestList trace = random_trace(12, 200, 4, 17);
    for (Bytes capacity : {Bytes{0}, Bytes{9}, Bytes{25}, Bytes{200}}) {
      Residency residency = make(GetParam(), sizes, capacity, trace, keep);
      for (std::size_t e = 0; e < trace.events(); ++e) {
        const EventOutcome& outcome = residency.on_event(trace.event(e));
        for (const Eviction& gone : outcome.evicted) EXPECT_EQ(gone.parts, keep);
        EXPECT_TRUE(outcome.hits.empty() || is_computable(keep));
        EXPECT_LE(residency.used(), capacity);
        for (const Placed& a : residency.resident()) EXPECT_EQ(a.parts, keep);
      }
    }
  }
}

TEST(CacheRegistry, NamesAreUniqueAndFound) {
  std::set<std::string_view> names;
  for (const CachePolicy& policy : cache_policies()) {
    EXPECT_TRUE(names.insert(policy.name).second);
    EXPECT_EQ(&find_cache(policy.name), &policy);
  }
}

TEST(CacheRegistry, UnknownNameListsTheKnownOnes) {
  try {
    find_cache("lruu");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kUsage);
    EXPECT_THAT(error.what(), testing::AllOf(testing::HasSubstr("--cache"), testing::HasSubstr("lruu"),
                                             testing::HasSubstr("belady_bypass")));
  }
}

TEST(CacheRegistry, RefusesWhatCannotBe) {
  for (const CachePolicy& policy : cache_policies()) {
    const RequestList none;
    EXPECT_THROW(make_cache(policy.name, {.keep = {}, .future = &none}), Error);
    EXPECT_THROW(make_cache(policy.name, {.keep = Parts(Part::kLsb), .future = &none}), Error);
    if (policy.oracle) {
      EXPECT_THROW(make_cache(policy.name, {}), Error);
    }
  }
}

TEST(CacheRegistry, PoolsRefuseWhatCannotBe) {
  const auto refused = [](const CacheConfig& config) {
    EXPECT_THROW(make_cache("zip-pools", config), Error);
  };
  const auto pools = [](const PoolsConfig& config) {
    CacheConfig all;
    all.pools = config;
    return all;
  };
  refused({});
  refused({.keep = Part::kMsb, .future = nullptr, .pools = {.slots = {{.f = 1}}}});
  refused(pools({.slots = {{.f = 1}, {.s = 1}}, .whole_only = true}));
  refused(pools({.slots = {{.f = 1}}, .rules = {.half_life = -1}}));
  refused(pools({.slots = {{.f = 1}}, .rules = {.half_life = std::nan("")}}));
  refused(pools({.slots = {{.f = 1}}, .counts = {{1, std::nan("")}}}));
  make_cache("zip-pools", pools({.slots = {{.f = 1}}, .whole_only = true}));
}

// A pool whose slots exceed the bytes of the cache reports an error and never exceeds them.
TEST(CacheRegistry, PoolsThatDoNotFitAreAnError) {
  const TestSizes sizes(5, TestSizes::Kind::kEqual, 1);
  CacheConfig config;
  config.pools.slots = {{.f = 2}};
  Residency residency(make_cache("zip-pools", config), sizes, 1);
  EXPECT_EQ(residency.on_event(std::vector{TestSizes::id(0)}).misses.size(), 1u);
  EXPECT_THROW(residency.on_event(std::vector{TestSizes::id(1)}), Error);
}

TEST(CacheRegistry, OracleRefusesEventsItWasNotTold) {
  const TestSizes sizes(3, TestSizes::Kind::kEqual, 1);
  RequestList told;
  told.add_event(std::vector{TestSizes::id(1)});
  for (const CachePolicy& policy : cache_policies()) {
    if (!policy.oracle) continue;
    Residency other = make(policy, sizes, 2, told);
    EXPECT_THROW(other.on_event(std::vector{TestSizes::id(2)}), Error);
    Residency longer = make(policy, sizes, 2, told);
    longer.on_event(told.event(0));
    EXPECT_THROW(longer.on_event(told.event(0)), Error);
  }
}

TEST(PresetRegistry, NamesPoliciesThatExist) {
  for (const Preset& preset : presets()) {
    EXPECT_EQ(&find_preset(preset.name), &preset);
    EXPECT_FALSE(preset.cache->oracle);
    EXPECT_EQ(preset.cache->pooled, preset.sharing != PoolSharing::kNone);
    EXPECT_FALSE(preset.router.empty());
    EXPECT_EQ(preset.prefetch->make({})->name(), preset.prefetch.name());
    EXPECT_EQ(preset.scheduler->make()->name(), preset.scheduler.name());
    EXPECT_EQ(preset.placement->make()->name(), preset.placement.name());
    EXPECT_EQ(preset.cache->sliced, preset.sliced());
  }
  EXPECT_EQ(find_preset("auto").cache.name(), "reuse");
  EXPECT_THROW(find_preset("fastest"), Error);
}

}  // namespace
}  // namespace sluice::experts
