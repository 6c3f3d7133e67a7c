// The protocol between Residency and a cache, recorded by a cache that logs its calls.
#include "experts/cache/residency.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <utility>

#include "experts/registry.h"

namespace sluice::experts {
namespace {

using testing::ElementsAre;

class SameSizes final : public ExpertSizes {
 public:
  ExpertBytes bytes(ExpertId) const override { return {.full = 20, .sm = 10, .exp = 4, .msb = 6, .lsb = 3}; }
};

std::string text(ExpertId id) { return std::to_string(id.layer) + "/" + std::to_string(id.index); }

// Answers as the test says, and logs every call.
class ScriptedCache final : public Cache {
 public:
  void on_step(const StepReport& report) override {
    std::string line = "step " + std::to_string(report.event);
    for (ExpertId id : report.hits) line += " hit " + text(id);
    for (ExpertId id : report.misses) line += " miss " + text(id);
    for (std::uint32_t count : report.tokens) line += " tokens " + std::to_string(count);
    log.push_back(line + " scores " + std::to_string(report.scores.size()));
  }
  Parts wanted(ExpertId id) const override { return want(id); }
  void victims(Bytes need, const PinnedView& pinned, std::vector<Eviction>& out) override {
    log.push_back("need " + std::to_string(need));
    for (const Eviction& victim : propose) {
      if (!pinned.pinned(victim.id)) out.push_back(victim);
    }
  }
  void on_insert(ExpertId id, Parts parts, Bytes bytes) override {
    log.push_back("insert " + text(id) + " " + static_cast<char>(state_of(parts)) + " " +
                  std::to_string(bytes));
  }
  void on_evict(ExpertId id, Parts parts) override {
    log.push_back("evict " + text(id) + " " + static_cast<char>(state_of(parts)));
  }
  std::string name() const override { return "scripted"; }

  std::function<Parts(ExpertId)> want = [](ExpertId) { return Parts(Part::kFull); };
  std::vector<Eviction> propose;
  std::vector<std::string> log;
};

class ResidencyTest : public testing::Test {
 protected:
  Residency make(Bytes capacity) {
    auto owned = std::make_unique<ScriptedCache>();
    cache = owned.get();
    return Residency(std::move(owned), sizes, capacity);
  }
  std::vector<std::string> take_log() { return std::exchange(cache->log, {}); }

  SameSizes sizes;
  ScriptedCache* cache = nullptr;
};

constexpr Parts kC = Part::kSm | Part::kExp;

TEST_F(ResidencyTest, TellsTheCacheInOrder) {
  Residency residency = make(40);
  residency.on_event(std::vector<ExpertId>{{1, 0}, {0, 3}}, std::vector<float>(8),
                     std::vector<std::uint32_t>{5, 6});
  EXPECT_THAT(take_log(), ElementsAre("step 0 miss 0/3 miss 1/0 tokens 5 tokens 6 scores 8",
                                      "insert 0/3 F 20", "insert 1/0 F 20"));
  cache->propose = {{{0, 3}, Part::kFull}, {{1, 0}, Part::kFull}};
  const EventOutcome& outcome = residency.on_event(std::vector<ExpertId>{{2, 0}, {0, 3}});
  EXPECT_THAT(take_log(),
              ElementsAre("step 1 hit 0/3 miss 2/0 scores 0", "need 20", "evict 1/0 F", "insert 2/0 F 20"));
  ASSERT_EQ(outcome.hits.size(), 1u);
  EXPECT_EQ(outcome.hits[0].id, (ExpertId{0, 3}));
  EXPECT_EQ(outcome.hits[0].parts, Parts(Part::kFull));
  EXPECT_EQ(outcome.hits[0].before, Parts(Part::kFull));
  ASSERT_EQ(outcome.evicted.size(), 1u);
  EXPECT_EQ(outcome.evicted[0].id, (ExpertId{1, 0}));
  EXPECT_EQ(residency.used(), 40u);
}

TEST_F(ResidencyTest, StreamsWhatFindsNoRoom) {
  Residency residency = make(25);
  residency.on_event(std::vector<ExpertId>{{0, 0}, {0, 1}});
  EXPECT_THAT(take_log(), ElementsAre("step 0 miss 0/0 miss 0/1 scores 0", "insert 0/0 F 20", "need 15"));
  EXPECT_EQ(residency.parts({0, 1}), Parts());
  Residency tiny = make(19);
  EXPECT_TRUE(tiny.on_event(std::vector<ExpertId>{{0, 0}}).misses[0].parts.empty());
  // A cache is never asked for the impossible.
  EXPECT_THAT(take_log(), ElementsAre("step 0 miss 0/0 scores 0"));
}

TEST_F(ResidencyTest, PartsMayGrowShrinkAndGo) {
  Residency residency = make(24);
  cache->want = [](ExpertId) { return Parts(Part::kSm); };
  residency.on_event(std::vector<ExpertId>{{0, 0}, {0, 1}});
  EXPECT_FALSE(residency.computable({0, 0}));
  EXPECT_EQ(residency.used(), 20u);
  take_log();
  // A single part is a miss; it grows within the capacity, and keeps its size where there is no room.
  cache->want = [](ExpertId) { return kC; };
  const EventOutcome& outcome = residency.on_event(std::vector<ExpertId>{{0, 0}, {0, 1}});
  EXPECT_THAT(take_log(), ElementsAre("step 1 miss 0/0 miss 0/1 scores 0", "insert 0/0 C 14", "need 4"));
  EXPECT_EQ(outcome.misses[0].parts, kC);
  EXPECT_EQ(outcome.misses[0].before, Parts(Part::kSm));
  EXPECT_EQ(outcome.misses[1].parts, Parts(Part::kSm));
  EXPECT_TRUE(residency.computable({0, 0}));
  // A victim may lose one part only.
  cache->propose = {{{0, 0}, Part::kExp}};
  residency.on_event(std::vector<ExpertId>{{0, 1}});
  EXPECT_EQ(residency.parts({0, 0}), Parts(Part::kSm));
  EXPECT_EQ(residency.parts({0, 1}), kC);
  // Parts that are no longer wanted are dropped when the expert is used.
  cache->want = [](ExpertId) { return Parts(); };
  const EventOutcome& dropped = residency.on_event(std::vector<ExpertId>{{0, 0}});
  ASSERT_EQ(dropped.evicted.size(), 1u);
  EXPECT_EQ(dropped.evicted[0].parts, Parts(Part::kSm));
  EXPECT_EQ(residency.used(), 14u);
  ASSERT_EQ(residency.resident().size(), 1u);
}

TEST_F(ResidencyTest, HashTellsOutcomesApart) {
  auto hash = [&](const std::vector<std::vector<ExpertId>>& events) {
    Residency residency = make(40);
    for (const std::vector<ExpertId>& ids : events) residency.on_event(ids);
    return residency.decision_hash();
  };
  EXPECT_EQ(hash({{{0, 0}, {0, 1}}}), hash({{{0, 1}, {0, 0}}}));
  EXPECT_NE(hash({{{0, 0}, {0, 1}}}), hash({{{0, 0}}, {{0, 1}}}));
  EXPECT_NE(hash({{{0, 0}}}), hash({{{1, 0}}}));
  EXPECT_NE(hash({{{0, 0}}, {}}), hash({{{0, 0}}}));
}

using ResidencyDeathTest = ResidencyTest;

TEST_F(ResidencyDeathTest, CatchesACacheThatBreaksTheRules) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  Residency residency = make(20);
  residency.on_event(std::vector<ExpertId>{{0, 0}});
  cache->propose = {{{0, 5}, Part::kFull}};
  EXPECT_DEATH(residency.on_event(std::vector<ExpertId>{{0, 1}}), "does not hold what is evicted");
  EXPECT_DEATH(residency.on_event(std::vector<ExpertId>{{0, 1}, {0, 1}}), "twice");
  cache->want = [](ExpertId) { return Parts(Part::kLsb); };
  EXPECT_DEATH(residency.on_event(std::vector<ExpertId>{{0, 1}}), "is_legal");
}

TEST(Parts, States) {
  EXPECT_EQ(state_of({}), State::kM);
  EXPECT_EQ(state_of(Part::kFull), State::kF);
  EXPECT_EQ(state_of(kC), State::kC);
  EXPECT_EQ(state_of(Part::kSm), State::kS);
  EXPECT_EQ(state_of(Part::kExp), State::kE);
  int legal = 0, computable = 0;
  for (unsigned bits = 0; bits < 32; ++bits) {
    legal += is_legal(Parts::from_bits(bits));
    computable += is_legal(Parts::from_bits(bits)) && is_computable(Parts::from_bits(bits));
  }
  EXPECT_EQ(legal, 7);       // SPEC §5.1
  EXPECT_EQ(computable, 4);  // F, C, MSB, MSB + LSB
}

}  // namespace
}  // namespace sluice::experts
