// The warm-up: the specification's vector, a slow, obvious second implementation, and how slice-lru uses it.
#include "experts/cache/slices/slice_warmup.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <random>
#include <set>
#include <tuple>

#include "base/error.h"
#include "experts/cache/cache_policies.h"
#include "experts/cache/residency.h"
#include "experts/registry.h"

namespace sluice::experts::slice_warmup_test {
namespace {

using Ids = std::vector<ExpertId>;
constexpr Parts kBoth = Part::kMsb | Part::kLsb;

class Sizes final : public ExpertSizes {
 public:
  explicit Sizes(Bytes msb = 1, Bytes lsb = 1) : bytes_{.msb = msb, .lsb = lsb} {}
  ExpertBytes bytes(ExpertId) const override { return bytes_; }

 private:
  ExpertBytes bytes_;
};

ExpertId id(char letter) { return {0, static_cast<std::uint16_t>(letter - 'a')}; }
std::string text(const Ids& ids) {
  std::string out;
  for (ExpertId one : ids) out += static_cast<char>('a' + one.index);
  return out;
}
std::string text(std::span<const Slice> slices) {
  std::string out;
  for (const Slice& slice : slices)
    out += std::string(out.empty() ? "" : " ") + static_cast<char>('a' + slice.id.index) +
           (slice.part == Part::kMsb ? 'M' : 'L');
  return out;
}

TEST(SliceWarmup, VectorOfTheSpecification) {
  SliceWarmup warmup({});
  const std::tuple<char, int, int> counts[] = {{'a', 5, 3}, {'b', 2, 0}, {'c', 1, 0},
                                               {'d', 4, 1}, {'e', 3, 2}, {'f', 1, 0}};
  for (const auto& [letter, tokens, critical] : counts) {
    warmup.count(id(letter), static_cast<std::uint64_t>(tokens), static_cast<std::uint64_t>(critical));
    warmup.admit(id(letter), Sizes(), 5);
  }
  EXPECT_EQ(text(warmup.evictions()), "cL bL dL cM bM fL fM");
  EXPECT_EQ(text(warmup.trim(Sizes())), "e");
  EXPECT_EQ(text(warmup.msb_order()), "eda");
  EXPECT_EQ(text(warmup.lsb_order()), "a");
}

// SPEC §4.6 as written: every choice looks at all entries.
struct Naive {
  WarmupRules rules;
  Sizes sizes;
  Bytes capacity;
  std::map<ExpertId, std::pair<std::uint64_t, std::uint64_t>> counts = {};  // freq, crit
  std::set<ExpertId> msb = {}, lsb = {};
  std::vector<Slice> evictions = {};

  std::uint64_t freq(ExpertId id) { return counts[id].first; }
  std::uint64_t crit(ExpertId id) { return counts[id].second; }
  Bytes used() const { return msb.size() * sizes.bytes({}).msb + lsb.size() * sizes.bytes({}).lsb; }
  template <class May>
  std::optional<ExpertId> lowest_lsb(May&& may) {
    std::optional<ExpertId> best;
    for (ExpertId one : lsb)
      if (may(one) &&
          (!best || std::tuple(crit(one), freq(one), one) < std::tuple(crit(*best), freq(*best), *best)))
        best = one;
    return best;
  }
  void evict() {
    std::optional<ExpertId> victim = lowest_lsb([&](ExpertId one) {
      return freq(one) == 0 ? 0 < rules.kappa
                            : static_cast<double>(crit(one)) / static_cast<double>(freq(one)) < rules.kappa;
    });
    const auto any = [](ExpertId) { return true; };
    if (!victim && static_cast<double>(lsb.size()) > rules.rho * static_cast<double>(msb.size()))
      victim = lowest_lsb(any);
    if (!victim) {
      std::optional<ExpertId> bare;
      for (ExpertId one : msb)
        if (!lsb.contains(one) && (!bare || std::tuple(freq(one), one) < std::tuple(freq(*bare), *bare)))
          bare = one;
      if (bare) {
        msb.erase(*bare);
        evictions.push_back({*bare, Part::kMsb});
        return;
      }
      victim = lowest_lsb(any);
    }
    lsb.erase(*victim);
    evictions.push_back({*victim, Part::kLsb});
  }
  void admit(ExpertId one) {
    msb.insert(one);
    lsb.insert(one);
    while (used() > capacity) evict();
  }
  Ids trim() {
    Ids order(lsb.begin(), lsb.end());
    std::ranges::stable_sort(order, [&](ExpertId a, ExpertId b) { return crit(a) > crit(b); });
    const auto most = static_cast<std::size_t>(std::floor(rules.rho * static_cast<double>(msb.size())));
    Ids gone;
    for (std::size_t i = 0; i < order.size(); ++i)
      if (i >= most || crit(order[i]) == 0) gone.push_back(order[i]);
    for (ExpertId one : gone) lsb.erase(one);
    std::ranges::sort(gone);
    return gone;
  }
  Ids by_freq() {
    Ids order(msb.begin(), msb.end());
    std::ranges::stable_sort(order, [&](ExpertId a, ExpertId b) { return freq(a) < freq(b); });
    return order;
  }
  Ids by_crit() {
    Ids order(lsb.begin(), lsb.end());
    std::ranges::stable_sort(order, [&](ExpertId a, ExpertId b) { return crit(a) < crit(b); });
    return order;
  }
};

TEST(SliceWarmup, EqualsTheObviousImplementation) {
  std::size_t evictions = 0, trimmed = 0;
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 random(seed);
    const Sizes sizes(1 + random() % 3, random() % 4);
    const WarmupRules rules{.kappa = static_cast<double>(random() % 5) / 4,
                            .rho = static_cast<double>(random() % 6) / 4};
    const Bytes capacity = random() % 30;
    SliceWarmup warmup(rules);
    Naive naive{rules, sizes, capacity};
    const int layers = static_cast<int>(1 + random() % 3), experts = static_cast<int>(1 + random() % 8);
    for (std::uint64_t chunk = 1 + random() % 3; chunk > 0; --chunk) {  // later chunks change counts
      for (int layer = 0; layer < layers; ++layer) {
        Ids active;
        for (int e = 0; e < experts; ++e)
          if (random() % 3 != 0)
            active.push_back({static_cast<std::uint16_t>(layer), static_cast<std::uint16_t>(e)});
        for (ExpertId one : active) {
          const std::uint64_t tokens = 1 + random() % 6, critical = random() % (tokens + 1);
          warmup.count(one, tokens, critical);
          naive.counts[one].first += tokens;
          naive.counts[one].second += critical;
        }
        for (ExpertId one : active) {
          warmup.admit(one, sizes, capacity);
          naive.admit(one);
        }
        ASSERT_TRUE(std::ranges::equal(warmup.evictions(), naive.evictions));
        ASSERT_LE(naive.used(), capacity);
      }
    }
    evictions += naive.evictions.size();
    for (int layer = 0; layer < layers; ++layer) {
      for (int e = 0; e < experts; ++e) {
        const ExpertId one{static_cast<std::uint16_t>(layer), static_cast<std::uint16_t>(e)};
        ASSERT_EQ(warmup.parts(one).has(Part::kMsb), naive.msb.contains(one));
        ASSERT_EQ(warmup.parts(one).has(Part::kLsb), naive.lsb.contains(one));
      }
    }
    const Ids gone = naive.trim();
    trimmed += gone.size();
    ASSERT_EQ(warmup.trim(sizes), gone);
    ASSERT_EQ(warmup.msb_order(), naive.by_freq());
    ASSERT_EQ(warmup.lsb_order(), naive.by_crit());
  }
  EXPECT_GT(evictions, 1000u);
  EXPECT_GT(trimmed, 100u);
}

TEST(SliceWarmup, ShareOfLsbsIsKeptAtTheEnd) {
  for (double rho : {0.0, 0.25, 0.5, 1.0, 3.0}) {
    SliceWarmup warmup({.rho = rho});
    for (char c = 'a'; c < 'a' + 9; ++c) {
      warmup.count(id(c), 4, c == 'd' ? 0 : 4);
      warmup.admit(id(c), Sizes(), 100);
    }
    warmup.trim(Sizes());
    EXPECT_EQ(warmup.lsb_order().size(), std::min<std::size_t>(8, static_cast<std::size_t>(rho * 9)));
  }
}

TEST(SliceWarmup, RefusesSharesThatMakeNoSense) {
  for (double bad : {-1.0, std::nan(""), HUGE_VAL}) {
    EXPECT_THROW((WarmupRules{.kappa = bad}.validate()), Error);
    EXPECT_THROW((WarmupRules{.rho = bad}.validate()), Error);
  }
}

// One prompt of `layers` events, where expert e of each layer has its own tokens and critical tokens; then a
// decode event that asks only for expert 0/0.
struct Prompt {
  std::uint16_t layers, experts;
  std::uint32_t tokens(std::uint16_t layer, std::uint16_t e) const { return 1 + (layer * 7u + e * 5u) % 9; }
  std::uint32_t critical(std::uint16_t layer, std::uint16_t e) const {
    return (layer * 3u + e * 11u) % (tokens(layer, e) + 1);
  }
  const EventOutcome& run(Residency& residency, std::uint16_t layer) const {
    Ids ids;
    std::vector<std::uint32_t> tokens_of, critical_of;
    for (std::uint16_t e = 0; e < experts; ++e) {
      ids.push_back({layer, e});
      tokens_of.push_back(tokens(layer, e));
      critical_of.push_back(critical(layer, e));
    }
    return residency.on_event(ids, {}, tokens_of,
                              {.ranked = ids, .prompt = true, .critical_tokens = critical_of});
  }
  static const EventOutcome& decode(Residency& residency, ExpertId one) {
    const Ids ids = {one};
    return residency.on_event(ids, {}, {}, {.ranked = ids});
  }
};

Residency make(InitialSlices initial, Bytes capacity, std::uint64_t seed = 0) {
  static const Sizes sizes(3, 2);
  CacheConfig config{.keep = kBoth, .seed = seed};
  config.slices.initial = initial;
  return Residency(make_cache("slice-lru", config), sizes, capacity);
}

// The engine's cache is the warm-up itself, event by event, with its trim when the prompt is over.
TEST(SliceLruCache, PromptsAreTheWarmups) {
  const Prompt prompt{.layers = 4, .experts = 6};
  for (Bytes capacity : {Bytes{0}, Bytes{7}, Bytes{40}, Bytes{60}, Bytes{1000}}) {
    SCOPED_TRACE("capacity " + std::to_string(capacity));
    const Sizes sizes(3, 2);
    Residency residency = make(InitialSlices::kWarmup, capacity);
    SliceWarmup warmup({});
    const auto agree = [&] {
      for (std::uint16_t layer = 0; layer < prompt.layers; ++layer)
        for (std::uint16_t e = 0; e < prompt.experts; ++e)
          ASSERT_EQ(residency.parts({layer, e}), warmup.parts({layer, e})) << layer << "/" << e;
    };
    for (int chunk = 0; chunk < 2; ++chunk) {
      for (std::uint16_t layer = 0; layer < prompt.layers; ++layer) {
        for (std::uint16_t e = 0; e < prompt.experts; ++e)
          warmup.count({layer, e}, prompt.tokens(layer, e), prompt.critical(layer, e));
        for (std::uint16_t e = 0; e < prompt.experts; ++e) warmup.admit({layer, e}, sizes, capacity);
        const EventOutcome& outcome = prompt.run(residency, layer);
        for (const std::vector<Admission>* used : {&outcome.hits, &outcome.misses}) {
          for (const Admission& one : *used) {
            EXPECT_EQ(one.view, kBoth);  // prompts are computed at high precision
            EXPECT_EQ(one.to_read(), kBoth - one.before);
            EXPECT_FALSE(one.downgraded());
          }
        }
        agree();
      }
    }
    Ids trimmed;
    for (ExpertId one : warmup.trim(sizes)) trimmed.push_back(one);
    const EventOutcome& outcome = Prompt::decode(residency, {9, 0});
    Ids gone;
    for (std::size_t i = 0; i < trimmed.size(); ++i) {
      ASSERT_LT(i, outcome.evicted.size());
      EXPECT_EQ(outcome.evicted[i].parts, Parts(Part::kLsb));
      gone.push_back(outcome.evicted[i].id);
    }
    EXPECT_EQ(gone, trimmed);
    // Later departures follow the orders handed over: LSBs, then MSBs.
    SliceLru expected({});
    expected.start(warmup.msb_order(), warmup.lsb_order(), sizes);
    const Ids first = {{9, 0}};
    expected.on_event(first, {}, sizes, capacity);
    for (std::uint16_t e = 1; e < 9; ++e) {
      const Ids next = {{9, e}};
      expected.on_event(next, {}, sizes, capacity);
      const EventOutcome& later = Prompt::decode(residency, next[0]);
      ASSERT_EQ(later.evicted.size(), expected.evicted().size());
      for (std::size_t i = 0; i < later.evicted.size(); ++i) {
        EXPECT_EQ(later.evicted[i].id, expected.evicted()[i].id);
        EXPECT_EQ(later.evicted[i].parts, Parts(expected.evicted()[i].part));
      }
    }
  }
}

TEST(SliceLruCache, ASecondPromptCountsAnew) {
  Residency residency = make(InitialSlices::kWarmup, 3 * 3);  // three MSBs
  const Prompt prompt{.layers = 1, .experts = 3};
  prompt.run(residency, 0);
  Prompt::decode(residency, {0, 0});
  ASSERT_EQ(residency.resident().size(), 3u);
  // Experts of the old prompt leave first unless the new one has chosen them, however often the old one used
  // them.
  const Ids next = {{1, 0}, {1, 1}};
  residency.on_event(next, {}, std::vector<std::uint32_t>{1, 1}, {.ranked = next, .prompt = true});
  EXPECT_TRUE(residency.parts({1, 0}).has(Part::kMsb));
  EXPECT_TRUE(residency.parts({1, 1}).has(Part::kMsb));
}

// Events of one sequence, with every expert ranked.
const EventOutcome& event_of(Residency& residency, const Ids& ids, SequenceId sequence, StepKind kind) {
  const SequenceSpan span{.sequence = sequence, .tokens = 1, .kind = kind};
  const std::vector<std::uint32_t> tokens(ids.size(), 1);
  return residency.on_event(
      ids, {}, tokens,
      {.ranked = ids, .prompt = kind == StepKind::kPrompt, .critical_tokens = tokens, .spans = {&span, 1}});
}

TEST(SliceLruCache, APromptEndsWithTheFirstDecodedTokenOfItsOwnSequence) {
  for (const InitialSlices initial : {InitialSlices::kWarmup, InitialSlices::kEmpty}) {
    Residency residency = make(initial, 1000);
    event_of(residency, {{0, 0}}, 1, StepKind::kPrompt);
    event_of(residency, {{0, 0}}, 1, StepKind::kDecode);
    event_of(residency, {{1, 0}, {1, 1}, {1, 2}, {1, 3}}, 2, StepKind::kPrompt);
    const Bytes before = residency.used();
    EXPECT_EQ(event_of(residency, {{0, 0}}, 1, StepKind::kDecode).trimmed, 0u);  // another sequence's token
    EXPECT_EQ(residency.used(), before + (initial == InitialSlices::kEmpty ? 3 : 0));
    event_of(residency, {{1, 0}, {1, 1}, {1, 2}, {1, 3}}, 2, StepKind::kPrompt);
    const EventOutcome& end = event_of(residency, {{1, 0}}, 2, StepKind::kDecode);
    // At most as many LSBs as half of the MSBs outlive a prompt.
    EXPECT_EQ(end.trimmed > 0, initial == InitialSlices::kWarmup);
    EXPECT_EQ(event_of(residency, {{1, 0}}, 2, StepKind::kDecode).trimmed, 0u);
  }
}

TEST(SliceLruCache, APromptCountsOnAfterOthersWereDecoded) {
  Residency apart = make(InitialSlices::kWarmup, 25), together = make(InitialSlices::kWarmup, 25);
  for (Residency* residency : {&apart, &together})
    for (int i = 0; i < 3; ++i) event_of(*residency, {{0, 0}}, 1, StepKind::kPrompt);
  event_of(apart, {{0, 0}}, 7, StepKind::kDecode);  // as in the middle of the prompt
  for (Residency* residency : {&apart, &together})
    for (std::uint16_t e = 1; e < 7; ++e) event_of(*residency, {{0, e}}, 1, StepKind::kPrompt);
  // Chosen by three tokens before and by none behind: forgotten counts would let it leave first.
  EXPECT_EQ(apart.parts({0, 0}), together.parts({0, 0}));
  EXPECT_TRUE(apart.parts({0, 0}).has(Part::kMsb));
  EXPECT_FALSE(apart.parts({0, 1}).has(Part::kLsb));
}

TEST(SliceLruCache, APromptWhoseSequenceEndedEndsWithTheNextDecodedToken) {
  Residency residency = make(InitialSlices::kWarmup, 1000);
  event_of(residency, {{1, 0}, {1, 1}, {1, 2}, {1, 3}}, 2, StepKind::kPrompt);
  residency.end_sequence(2);
  EXPECT_GT(event_of(residency, {{0, 0}}, 1, StepKind::kDecode).trimmed, 0u);
}

std::pair<Bytes, Ids> after_prompt(InitialSlices initial, Bytes capacity, std::uint64_t seed = 0) {
  Residency residency = make(initial, capacity, seed);
  const Prompt prompt{.layers = 5, .experts = 8};
  for (std::uint16_t layer = 0; layer < prompt.layers; ++layer) prompt.run(residency, layer);
  const EventOutcome& outcome = Prompt::decode(residency, {0, 0});
  const Admission& one = outcome.hits.empty() ? outcome.misses[0] : outcome.hits[0];
  Bytes used = residency.used();
  used -= one.before.empty() ? Sizes(3, 2).bytes({}).of(one.parts) : 0;
  for (const Eviction& gone : outcome.evicted)
    if (gone.parts.has(Part::kMsb)) used += 3;
  Ids ids;
  for (const Placed& placed : residency.resident())
    if (placed.id != ExpertId{0, 0}) ids.push_back(placed.id);
  return {used, ids};
}

TEST(SliceLruCache, InitialStates) {
  const Bytes capacity = 60;
  const auto [warm, warm_ids] = after_prompt(InitialSlices::kWarmup, capacity);
  EXPECT_GT(warm, capacity - 10);
  EXPECT_EQ(after_prompt(InitialSlices::kEmpty, capacity).first, 0u);
  EXPECT_EQ(after_prompt(InitialSlices::kEmpty, capacity).second.size(), 0u);
  // The last layers' experts stay, and no LSB where MSBs could evict it.
  for (ExpertId one : after_prompt(InitialSlices::kLastLayer, capacity).second) EXPECT_GE(one.layer, 2);
  const auto [random, random_ids] = after_prompt(InitialSlices::kRandom, capacity, 1);
  EXPECT_GT(random, capacity - 10);
  EXPECT_EQ(random_ids, after_prompt(InitialSlices::kRandom, capacity, 1).second);
  EXPECT_NE(random_ids, after_prompt(InitialSlices::kRandom, capacity, 2).second);
  EXPECT_NE(random_ids, warm_ids);
}

// Every expert is equally likely: chi-square over 40 of them, seeds fixed; 39 degrees of freedom, 72.1 at p =
// 0.001.
TEST(SliceLruCache, RandomIsUniform) {
  std::map<ExpertId, double> kept;
  double total = 0;
  const int seeds = 600;
  for (std::uint64_t seed = 0; seed < seeds; ++seed) {
    Residency residency = make(InitialSlices::kRandom, 60, seed);
    const Prompt prompt{.layers = 5, .experts = 8};
    for (std::uint16_t layer = 0; layer < prompt.layers; ++layer) prompt.run(residency, layer);
    for (const Placed& placed : residency.resident()) {
      kept[placed.id] += 1;
      total += 1;
    }
  }
  double chi_square = 0;
  const double expected = total / 40;
  for (std::uint16_t layer = 0; layer < 5; ++layer)
    for (std::uint16_t e = 0; e < 8; ++e) {
      const double difference = kept[{layer, e}] - expected;
      chi_square += difference * difference / expected;
    }
  EXPECT_LT(chi_square, 72.1);
}

}  // namespace
}  // namespace sluice::experts::slice_warmup_test
