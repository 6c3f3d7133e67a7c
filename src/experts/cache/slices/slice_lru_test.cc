// Slice-LRU: the specification's vectors, its rules one by one, and a slow, obvious second implementation.
#include "experts/cache/slices/slice_lru.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <random>
#include <string>

#include "base/error.h"
#include "base/setting.h"
#include "experts/cache/cache_policies.h"
#include "experts/cache/residency.h"
#include "experts/registry.h"

namespace sluice::experts {
namespace {

using testing::ElementsAre;

using Ids = std::vector<ExpertId>;
using Fate = SliceLru::Fate;

ExpertId id(int number) {
  return {static_cast<std::uint16_t>(number / 5), static_cast<std::uint16_t>(number % 5)};
}
int number(ExpertId id) { return id.layer * 5 + id.index; }

// Sizes by number.
class Sizes final : public ExpertSizes {
 public:
  explicit Sizes(std::vector<ExpertBytes> bytes = {}) : bytes_(std::move(bytes)) {}
  ExpertBytes bytes(ExpertId id) const override {
    return bytes_.empty() ? ExpertBytes{.msb = 1, .lsb = 1} : bytes_[static_cast<std::size_t>(number(id))];
  }

 private:
  std::vector<ExpertBytes> bytes_;
};

// Letters stand for experts: a is number 0.
Ids ids(std::string_view letters) {
  Ids out;
  for (char c : letters) out.push_back(id(c - 'a'));
  return out;
}
std::string letters(std::span<const ExpertId> ids) {
  std::string out;
  for (ExpertId one : ids) out += static_cast<char>('a' + number(one));
  return out;
}
std::string text(std::span<const SliceLru::Request> requests) {
  std::string out;
  for (const SliceLru::Request& request : requests) {
    if (!out.empty()) out += ' ';
    out += letters(std::array{request.id});
    out += request.part == Part::kMsb ? 'M' : 'L';
    out += request.fate == Fate::kHit      ? '+'
           : request.fate == Fate::kMiss   ? '-'
           : request.fate == Fate::kStream ? '~'
                                           : '0';
  }
  return out;
}
std::string text(std::span<const Slice> slices) {
  std::string out;
  for (const Slice& slice : slices) {
    if (!out.empty()) out += ' ';
    out += letters(std::array{slice.id});
    out += slice.part == Part::kMsb ? 'M' : 'L';
  }
  return out;
}

struct Told {
  std::string requests, evicted, queues;
  bool operator==(const Told&) const = default;
};
void PrintTo(const Told& told, std::ostream* out) {
  *out << told.requests << " | " << told.evicted << " | " << told.queues;
}

Told step(SliceLru& cache, std::string_view ranked, std::string_view critical, Bytes capacity) {
  cache.on_event(ids(ranked), ids(critical), Sizes(), capacity);
  return {text(cache.requests()), text(cache.evicted()),
          "[" + letters(cache.msb()) + "][" + letters(cache.lsb()) + "]"};
}

TEST(SliceLru, VectorsOfTheSpecification) {
  SliceLru cache({.lsb_miss = LsbMiss::kFetch});
  EXPECT_EQ(step(cache, "ab", "a", 4), (Told{"aM- bM- aL-", "", "[ab][a]"}));
  EXPECT_EQ(step(cache, "ac", "", 4), (Told{"aM+ cM-", "", "[bac][a]"}));
  EXPECT_EQ(step(cache, "cd", "c", 4), (Told{"cM+ dM- cL~", "aL", "[bacd][]"}));
  EXPECT_EQ(step(cache, "e", "e", 4), (Told{"eM- eL~", "bM", "[acde][]"}));
  EXPECT_EQ(step(cache, "ac", "a", 4), (Told{"aM+ cM+ aL~", "", "[deac][]"}));
  SliceLru two({});
  EXPECT_EQ(step(two, "abc", "", 2), (Told{"aM- bM- cM~", "", "[ab][]"}));
}

TEST(SliceLru, LsbsLeaveBeforeAnyMsb) {
  SliceLru cache({});
  step(cache, "ab", "ab", 5);
  step(cache, "b", "", 5);  // b's LSB stays the more recent one, but only in its own queue
  EXPECT_EQ(step(cache, "cd", "", 5), (Told{"cM- dM-", "aL", "[abcd][b]"}));
  EXPECT_EQ(step(cache, "ef", "", 5), (Told{"eM- fM-", "bL aM", "[bcdef][]"}));
}

TEST(SliceLru, AnLsbThatIsNotRequestedMayLeaveItsExpertInUse) {
  SliceLru cache({});
  step(cache, "a", "a", 2);
  EXPECT_EQ(step(cache, "ab", "", 2), (Told{"aM+ bM-", "aL", "[ab][]"}));
}

TEST(SliceLru, LsbMisses) {
  SliceLru never({.lsb_miss = LsbMiss::kSkip});
  EXPECT_EQ(step(never, "ab", "ba", 9).requests, "aM- bM- aL0 bL0");
  SliceLru always({.lsb_miss = LsbMiss::kFetch});
  always.on_event(ids("ab"), ids("ab"), Sizes(), 9, 0);
  EXPECT_EQ(text(always.requests()), "aM- bM- aL- bL-");
  // In score order as far as the bytes go; a slice without room is still read; a hit costs nothing.
  SliceLru budget({.lsb_miss = LsbMiss::kFetchIfBudget});
  budget.on_event(ids("bac"), ids("abc"), Sizes(), 4, 2);
  EXPECT_EQ(text(budget.requests()), "bM- aM- cM- bL- aL~ cL0");
  budget.on_event(ids("bac"), ids("abc"), Sizes(), 9, 1);
  EXPECT_EQ(text(budget.requests()), "bM+ aM+ cM+ bL+ aL- cL0");
}

TEST(SliceLru, ReserveIsForLsbs) {
  SliceLru cache({.lsb_reserve = 0.5});  // two of four
  EXPECT_EQ(step(cache, "abc", "ab", 4), (Told{"aM- bM- cM~ aL- bL-", "", "[ab][ab]"}));
  EXPECT_EQ(step(cache, "d", "", 4), (Told{"dM-", "aL aM", "[bd][b]"}));  // an MSB takes its LSB along
  EXPECT_EQ(step(cache, "bd", "d", 4), (Told{"bM+ dM+ dL-", "", "[bd][bd]"}));
  EXPECT_EQ(step(cache, "e", "", 4), (Told{"eM-", "bL bM", "[de][d]"}));
  SliceLru all({.lsb_reserve = 1});
  EXPECT_EQ(step(all, "a", "a", 4), (Told{"aM~ aL~", "", "[][]"}));
  for (double bad : {-0.1, 1.1, std::nan("")}) {
    CacheConfig config{.keep = Part::kMsb | Part::kLsb};
    config.slices.rules.lsb_reserve = bad;
    EXPECT_THROW(make_cache("slice-lru", config), Error);
  }
}

TEST(SliceLru, StartsWithWhatItIsGiven) {
  SliceLru cache({});
  step(cache, "xy", "x", 9);
  cache.start(ids("bca"), ids("ab"), Sizes());
  EXPECT_EQ(step(cache, "d", "", 5), (Told{"dM-", "aL", "[bcad][b]"}));
  EXPECT_EQ(cache.parts(id(0)), Parts(Part::kMsb));
  EXPECT_EQ(cache.parts(id(1)), Part::kMsb | Part::kLsb);
  EXPECT_EQ(cache.parts(id('x' - 'a')), Parts());
}

// SPEC §4.3 as written, on plain lists; makes room on a copy, which is discarded if there is not enough.
struct Naive {
  SliceLruRules rules;
  const Sizes& sizes;
  Bytes capacity;
  Ids msb = {}, lsb = {};
  std::vector<SliceLru::Request> requests = {};
  std::vector<Slice> evicted = {};

  static bool in(const Ids& list, ExpertId id) { return std::ranges::count(list, id) != 0; }
  Bytes msb_bytes() const {
    Bytes sum = 0;
    for (ExpertId one : msb) sum += sizes.bytes(one).msb;
    return sum;
  }
  Bytes lsb_bytes() const {
    Bytes sum = 0;
    for (ExpertId one : lsb) sum += sizes.bytes(one).lsb;
    return sum;
  }
  static std::optional<ExpertId> first_outside(const Ids& list, const Ids& kept) {
    for (ExpertId one : list)
      if (!in(kept, one)) return one;
    return std::nullopt;
  }
  void drop(ExpertId one, Part part) {
    std::erase(part == Part::kMsb ? msb : lsb, one);
    evicted.push_back({one, part});
  }

  bool room_for_msb(Bytes bytes, const Ids& sel, const Ids& crit) {
    Naive trial = *this;
    const auto reserve = static_cast<Bytes>(rules.lsb_reserve * static_cast<double>(capacity));
    while (true) {
      const bool full = trial.msb_bytes() + trial.lsb_bytes() + bytes > capacity;
      const bool too_many = trial.msb_bytes() + bytes > capacity - reserve;
      if (!full && !too_many) break;
      if (full && (reserve == 0 || trial.lsb_bytes() > reserve)) {
        if (const auto victim = first_outside(trial.lsb, crit)) {
          trial.drop(*victim, Part::kLsb);
          continue;
        }
      }
      const auto victim = first_outside(trial.msb, sel);
      if (!victim) return false;
      if (in(trial.lsb, *victim)) trial.drop(*victim, Part::kLsb);
      trial.drop(*victim, Part::kMsb);
    }
    msb = trial.msb;
    lsb = trial.lsb;
    evicted = trial.evicted;
    return true;
  }

  bool room_for_lsb(ExpertId expert, Bytes bytes, const Ids& crit) {
    if (!in(msb, expert)) return false;
    Naive trial = *this;
    while (trial.msb_bytes() + trial.lsb_bytes() + bytes > capacity) {
      const auto victim = first_outside(trial.lsb, crit);
      if (!victim) return false;
      trial.drop(*victim, Part::kLsb);
    }
    lsb = trial.lsb;
    evicted = trial.evicted;
    return true;
  }

  void step(const Ids& sel, const Ids& crit, Bytes allowance) {
    requests.clear();
    evicted.clear();
    const Ids msb_before = msb, lsb_before = lsb;
    for (ExpertId one : sel) {
      Fate fate = Fate::kHit;
      if (in(msb_before, one)) {
        std::erase(msb, one);
        msb.push_back(one);
      } else if (room_for_msb(sizes.bytes(one).msb, sel, crit)) {
        fate = Fate::kMiss;
        msb.push_back(one);
      } else {
        fate = Fate::kStream;
      }
      requests.push_back({one, Part::kMsb, fate});
    }
    for (ExpertId one : sel) {
      if (!in(crit, one)) continue;
      const Bytes bytes = sizes.bytes(one).lsb;
      Fate fate = Fate::kStream;
      if (in(lsb_before, one)) {
        fate = Fate::kHit;
        std::erase(lsb, one);
        lsb.push_back(one);
      } else if (rules.lsb_miss == LsbMiss::kSkip ||
                 (rules.lsb_miss == LsbMiss::kFetchIfBudget && bytes > allowance)) {
        fate = Fate::kSkip;
      } else {
        if (rules.lsb_miss == LsbMiss::kFetchIfBudget) allowance -= bytes;
        if (room_for_lsb(one, bytes, crit)) {
          fate = Fate::kMiss;
          lsb.push_back(one);
        }
      }
      requests.push_back({one, Part::kLsb, fate});
    }
  }
};

struct Event {
  Ids sel, crit;
  Bytes allowance;
};
Event random_event(std::mt19937_64& random, int experts) {
  Event event;
  for (int i = 0; i < experts; ++i) event.sel.push_back(id(i));
  std::ranges::shuffle(event.sel, random);
  event.sel.resize(random() % (std::min<std::size_t>(4, event.sel.size()) + 1));
  for (ExpertId one : event.sel)
    if (random() % 2 == 0) event.crit.push_back(one);
  std::ranges::shuffle(event.crit, random);
  event.allowance = random() % 8;
  return event;
}

struct Setting {
  int experts;
  Sizes sizes;
  Bytes total;
  SliceLruRules rules;
};
Setting random_setting(std::mt19937_64& random) {
  Setting setting{.experts = static_cast<int>(1 + random() % 12), .sizes = Sizes(), .total = 0, .rules = {}};
  std::vector<ExpertBytes> bytes;
  const bool equal = random() % 2 == 0;
  for (int i = 0; i < setting.experts; ++i) {
    bytes.push_back({.msb = equal ? 3 : random() % 6, .lsb = equal ? 2 : random() % 6});
    setting.total += bytes.back().msb + bytes.back().lsb;
  }
  setting.sizes = Sizes(bytes);
  setting.rules.lsb_miss = static_cast<LsbMiss>(random() % 3);
  setting.rules.lsb_reserve = random() % 2 == 0 ? 0 : static_cast<double>(random() % 5) / 4;
  return setting;
}

TEST(SliceLru, EqualsTheObviousImplementation) {
  int evictions = 0, streams = 0, skips = 0;
  for (std::uint64_t seed = 1; seed <= 400; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 random(seed);
    const Setting setting = random_setting(random);
    const Bytes capacity = random() % (setting.total + 2);
    SliceLru cache(setting.rules);
    Naive naive{setting.rules, setting.sizes, capacity};
    for (int e = 0; e < 60; ++e) {
      const Event event = random_event(random, setting.experts);
      cache.on_event(event.sel, event.crit, setting.sizes, capacity, event.allowance);
      naive.step(event.sel, event.crit, event.allowance);
      ASSERT_EQ(text(cache.requests()), text(naive.requests)) << "event " << e;
      ASSERT_EQ(text(cache.evicted()), text(naive.evicted)) << "event " << e;
      ASSERT_EQ(cache.msb(), naive.msb);
      ASSERT_EQ(cache.lsb(), naive.lsb);
      // The specification's promises.
      ASSERT_LE(naive.msb_bytes() + naive.lsb_bytes(), capacity);
      for (ExpertId one : cache.lsb()) ASSERT_TRUE(cache.parts(one).has(Part::kMsb));
      evictions += static_cast<int>(cache.evicted().size());
      for (const SliceLru::Request& request : cache.requests()) {
        streams += request.fate == Fate::kStream;
        skips += request.fate == Fate::kSkip;
      }
    }
  }
  EXPECT_GT(evictions, 1000);
  EXPECT_GT(streams, 1000);
  EXPECT_GT(skips, 1000);
}

// The engine's cache reports for every expert what SliceLru decided.
TEST(SliceLruCache, OutcomeSaysWhatToReadUseAndKeep) {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 random(seed * 77);
    const Setting setting = random_setting(random);
    const Bytes capacity = random() % (setting.total + 2);
    CacheConfig config{.keep = Part::kMsb | Part::kLsb};
    config.slices.rules = setting.rules;
    Residency residency(make_cache("slice-lru", config), setting.sizes, capacity);
    SliceLru plain(setting.rules);
    for (int e = 0; e < 40; ++e) {
      const Event event = random_event(random, setting.experts);
      std::vector<Parts> before, after, read;
      for (int i = 0; i < setting.experts; ++i) before.push_back(plain.parts(id(i)));
      plain.on_event(event.sel, event.crit, setting.sizes, capacity, event.allowance);
      for (int i = 0; i < setting.experts; ++i) after.push_back(plain.parts(id(i)));
      read.resize(before.size());
      std::vector<bool> skipped(before.size());
      for (const SliceLru::Request& request : plain.requests()) {
        const auto n = static_cast<std::size_t>(number(request.id));
        if (request.fate == Fate::kSkip) skipped[n] = true;
        if (request.fate == Fate::kMiss || request.fate == Fate::kStream) read[n] = read[n] | request.part;
      }
      const EventOutcome& outcome = residency.on_event(
          event.sel, {}, {}, {.ranked = event.sel, .critical = event.crit, .lsb_allowance = event.allowance});
      std::vector<Slice> evicted;
      for (const Eviction& gone : outcome.evicted)
        evicted.push_back({gone.id, gone.parts == Part::kMsb ? Part::kMsb : Part::kLsb});
      ASSERT_EQ(text(evicted), text(plain.evicted()));
      ASSERT_EQ(outcome.hits.size() + outcome.misses.size(), event.sel.size());
      for (const std::vector<Admission>* used : {&outcome.hits, &outcome.misses}) {
        for (const Admission& one : *used) {
          const auto n = static_cast<std::size_t>(number(one.id));
          const bool critical = std::ranges::count(event.crit, one.id) != 0;
          EXPECT_EQ(one.before, before[n]);
          EXPECT_EQ(one.parts, after[n]);
          EXPECT_EQ(one.to_read(), read[n]);
          EXPECT_EQ(one.downgraded(), skipped[n]);
          EXPECT_EQ(one.asked, critical ? Part::kMsb | Part::kLsb : Parts(Part::kMsb));
          EXPECT_EQ(used == &outcome.hits, before[n].has_all(one.asked));
          EXPECT_TRUE(used == &outcome.misses || one.to_read().empty());
          // High view if MSB and LSB are available now: resident, or read for it, and not given up for other
          // slices.
          const bool there = before[n].has(Part::kLsb) && after[n].has(Part::kLsb);
          EXPECT_EQ(one.view.has(Part::kLsb), critical ? !skipped[n] : there);
          EXPECT_TRUE(one.view.has(Part::kMsb));
        }
      }
      for (int i = 0; i < setting.experts; ++i)
        ASSERT_EQ(residency.parts(id(i)), after[static_cast<std::size_t>(i)]);
    }
  }
}

TEST(SliceLruCache, RefusesOtherFamilies) {
  for (Parts keep : {Parts(Part::kFull), Part::kSm | Part::kExp, Parts(Part::kMsb)})
    EXPECT_THROW(make_cache("slice-lru", {.keep = keep}), Error);
}

}  // namespace
}  // namespace sluice::experts
