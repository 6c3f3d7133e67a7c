// The cache `score-window` against a plain model of SPEC §2.4: random scores, prompts in chunks and prompts
// that follow each other, one cache for a layer and for several, experts of equal size.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "experts/cache/cache_policies.h"
#include "experts/cache/residency.h"
#include "experts/core/equal_sizes.h"
#include "experts/registry.h"

namespace sluice::experts {
namespace {

constexpr std::uint32_t kExperts = 8;
constexpr Bytes kSlots = 6;

ExpertId id_of(std::uint32_t layer, std::uint32_t expert) {
  return {static_cast<std::uint16_t>(layer), static_cast<std::uint16_t>(expert)};
}

struct Event {
  std::uint32_t layer = 0;
  StepKind step = StepKind::kDecode;
  bool begins_prompt = false;
  std::vector<ExpertId> ids;
  std::vector<float> scores;
  std::vector<std::uint32_t> layer_tokens;
};

Event random_event(std::mt19937_64& random, std::uint32_t layer, StepKind step, bool begins_prompt) {
  Event event{.layer = layer,
              .step = step,
              .begins_prompt = begins_prompt,
              .ids = {},
              .scores = {},
              .layer_tokens = {}};
  for (std::uint32_t e = 0; e < kExperts; ++e) {
    event.scores.push_back(static_cast<float>(random() % 4) / 4);  // equal means happen
    const bool chosen = random() % 3 == 0;
    event.layer_tokens.push_back(chosen ? 1 + static_cast<std::uint32_t>(random() % 3) : 0);
    if (chosen) event.ids.push_back(id_of(layer, e));
  }
  return event;
}

// Keeps every score it was ever told, by iteration.
class Plain {
 public:
  explicit Plain(std::uint32_t iterations) : iterations_(iterations) {}

  // The best of those that other units compute comes in; says which, and what leaves for it.
  std::vector<ExpertId> take_idle(const Event& event, const std::vector<ExpertId>& elsewhere) {
    std::vector<ExpertId> all;
    for (const ExpertId id : elsewhere)
      if (!last_.contains(id)) all.push_back(id);
    if (all.empty()) return {};
    const ExpertId best =
        *std::ranges::min_element(all, {}, [&](ExpertId id) { return std::pair(-mean(id), id); });
    std::vector<ExpertId> moved{best};
    if (last_.size() == kSlots) {
      const std::vector<ExpertId> leaving = worst(event.ids);
      if (leaving.empty() || mean(leaving.front()) >= mean(best)) return {};
      moved.push_back(leaving.front());
      last_.erase(leaving.front());
    }
    last_[best] = time_;
    return moved;
  }

  // What leaves, in order.
  std::vector<ExpertId> take(const Event& event) {
    ++time_;
    tell(event);
    std::vector<ExpertId> misses, left;
    for (const ExpertId id : event.ids)
      if (last_.contains(id))
        last_[id] = time_;
      else
        misses.push_back(id);
    for (const ExpertId id : misses) {
      if (last_.size() == kSlots) {
        const auto victim = worst(event.ids);
        if (victim.empty()) continue;
        last_.erase(victim.front());
        left.push_back(victim.front());
      }
      last_[id] = time_;
    }
    return left;
  }

 private:
  struct Told {
    std::vector<double> sum;
    double tokens = 0;
    StepKind step = StepKind::kDecode;
  };
  void tell(const Event& event) {
    std::vector<Told>& all = told_[event.layer];
    const bool goes_on = event.step == StepKind::kPrompt && !event.begins_prompt && !all.empty() &&
                         all.back().step == StepKind::kPrompt;
    if (!goes_on) all.push_back({std::vector<double>(kExperts), 0, event.step});
    double tokens = 0;
    for (const std::uint32_t one : event.layer_tokens) tokens += one;
    tokens = std::max(tokens, 1.0);
    all.back().tokens += tokens;
    for (std::uint32_t e = 0; e < kExperts; ++e)
      all.back().sum[e] += tokens * static_cast<double>(event.scores[e]);
  }
  double mean(ExpertId id) const {
    const auto at = told_.find(id.layer);
    if (at == told_.end()) return 0;
    const std::size_t count = std::min<std::size_t>(iterations_, at->second.size());
    double sum = 0;
    for (std::size_t i = at->second.size() - count; i < at->second.size(); ++i)
      sum += at->second[i].sum[id.index] / at->second[i].tokens;
    return sum / static_cast<double>(count);
  }
  std::vector<ExpertId> worst(const std::vector<ExpertId>& shielded) const {
    std::vector<ExpertId> all;
    for (const auto& [id, time] : last_)
      if (std::ranges::find(shielded, id) == shielded.end()) all.push_back(id);
    std::ranges::sort(all, {}, [&](ExpertId id) { return std::tuple(mean(id), last_.at(id), id); });
    return all;
  }

  const std::uint32_t iterations_;
  int time_ = 0;
  std::map<ExpertId, int> last_;  // when each resident was last used
  std::map<std::uint32_t, std::vector<Told>> told_;
};

TEST(ScoreWindowCache, DecidesAsThePlainModel) {
  static const EqualSizes one_each({.full = 1});
  std::size_t evicted = 0;
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 random(seed);
    const std::uint32_t layers = 1 + static_cast<std::uint32_t>(random() % 3),
                        iterations = 1 + static_cast<std::uint32_t>(random() % 5);
    CacheConfig config;
    config.workload.score_iterations = iterations;
    Residency residency(make_cache("score-window", config), one_each, kSlots);
    Plain plain(iterations);
    for (int step = 0; step < 60; ++step) {
      const StepKind kind = random() % 2 == 0 ? StepKind::kPrompt : StepKind::kDecode;
      const bool begins = kind == StepKind::kPrompt && random() % 2 == 0;
      for (std::uint32_t layer = 0; layer < layers; ++layer) {
        const Event event = random_event(random, layer, kind, begins);
        const EventOutcome& outcome = residency.on_event(
            event.ids, event.scores, {}, {},
            {.layer = layer, .step = kind, .begins_prompt = begins, .layer_tokens = event.layer_tokens});
        std::vector<ExpertId> left;
        for (const Eviction& one : outcome.evicted) left.push_back(one.id);
        ASSERT_EQ(left, plain.take(event)) << "step " << step << ", layer " << layer;
        evicted += left.size();
      }
    }
  }
  EXPECT_GT(evicted, 5000u);
}

// A device computes some of the chosen experts; the host computes the others, and the best of these comes in
// while the link is idle.
TEST(ScoreWindowCache, WhileTheLinkIsIdleTheBestOfTheOthersComesIn) {
  static const EqualSizes one_each({.full = 1});
  std::size_t came = 0, left = 0;
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 random(seed);
    const Admit admit = seed % 8 == 0 ? Admit::kLoaded : Admit::kIdle;
    CacheConfig config;
    config.workload.score_iterations = 3;
    config.workload.admit = admit;
    const std::uint32_t layers = 1 + static_cast<std::uint32_t>(random() % 2);
    Residency residency(make_cache("score-window", config), one_each, kSlots, Tier::kDevice);
    Plain plain(config.workload.score_iterations);
    for (int step = 0; step < 60; ++step)
      for (std::uint32_t layer = 0; layer < layers; ++layer) {
        Event event = random_event(random, layer, StepKind::kDecode, false);
        std::vector<ExpertId> elsewhere;
        std::erase_if(event.ids, [&](ExpertId id) {
          if (random() % 2 == 0) return false;
          elsewhere.push_back(id);
          return true;
        });
        const bool idle = random() % 3 != 0;
        const EventOutcome& outcome =
            residency.on_event(event.ids, event.scores, {}, {},
                               {.layer = layer, .layer_tokens = event.layer_tokens, .link_idle = idle});
        std::vector<ExpertId> expected = plain.take(event), gone;
        std::vector<ExpertId> moved;
        if (idle && admit == Admit::kIdle) moved = plain.take_idle(event, elsewhere);
        if (moved.size() == 2) expected.push_back(moved[1]);
        for (const Eviction& one : outcome.evicted) gone.push_back(one.id);
        ASSERT_EQ(gone, expected) << "step " << step << ", layer " << layer;
        ASSERT_EQ(outcome.updates.size(), moved.empty() ? 0u : 1u) << "step " << step << ", layer " << layer;
        if (moved.empty()) continue;
        EXPECT_EQ(outcome.updates[0].id, moved[0]);
        ++came;
        left += moved.size() - 1;
      }
  }
  EXPECT_GT(came, 2000u);
  EXPECT_GT(left, 1000u);
}

// The scores of experts that nobody selects count, too.
TEST(ScoreWindowCache, UnselectedExpertsHaveScores) {
  static const EqualSizes one_each({.full = 1});
  CacheConfig config;
  config.layers = {.first = 0, .layers = 1, .experts = 5};
  config.workload.score_iterations = 3;
  Residency residency(make_cache("score-window", config), one_each, 5);
  EXPECT_EQ(residency.start().updates.size(), 5u);
  Residency four(make_cache("score-window", config), one_each, 4);
  const std::size_t begin = four.start().updates.size();
  EXPECT_EQ(begin, 4u);
  std::vector<ExpertId> there;
  for (const Placed& one : four.resident()) there.push_back(one.id);
  for (const std::vector<float>& scores : {std::vector<float>{.4F, .3F, .2F, .05F, .05F},
                                           {.1F, .5F, .2F, .15F, .05F},
                                           {.05F, .15F, .3F, .4F, .1F}})
    four.on_event({}, scores, {}, {}, {.layer = 0});
  ExpertId missing;
  for (std::uint32_t e = 0; e < 5; ++e)
    if (std::ranges::find(there, id_of(0, e)) == there.end()) missing = id_of(0, e);
  const std::vector<float> none(5);
  const EventOutcome& outcome = four.on_event({{missing}}, none, {}, {}, {.layer = 0});
  ASSERT_EQ(outcome.evicted.size(), 1u);
  // By the last two and the zeros: means .05, .217, .167, .183, .05; the lower id leaves.
  EXPECT_EQ(outcome.evicted[0].id, missing.index == 0 ? id_of(0, 4) : id_of(0, 0));
}

TEST(ScoreWindowCache, WhereAllAreNeededWhatIsReadIsDropped) {
  static const EqualSizes one_each({.full = 1});
  Residency residency(make_cache("score-window", {}), one_each, 2);
  const std::vector<float> scores(4, .25F);
  const EventOutcome& outcome =
      residency.on_event({{id_of(0, 0), id_of(0, 1), id_of(0, 2)}}, scores, {}, {}, {.layer = 0});
  ASSERT_EQ(outcome.misses.size(), 3u);
  EXPECT_FALSE(outcome.misses[0].parts.empty());
  EXPECT_FALSE(outcome.misses[1].parts.empty());
  EXPECT_TRUE(outcome.misses[2].parts.empty());
  EXPECT_TRUE(outcome.evicted.empty());
}

}  // namespace
}  // namespace sluice::experts
