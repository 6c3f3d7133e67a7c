// What LayerDecider decides, against a plain transcription of the sequence, for every combination of policies
// that combination.h allows.
#include "experts/layer_decider.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <deque>
#include <iostream>
#include <map>
#include <optional>
#include <random>
#include <sstream>
#include <string>

#include "base/error.h"
#include "base/setting.h"
#include "experts/cache/cache_policies.h"
#include "experts/combination.h"
#include "experts/prefetch/expert_transitions.h"
#include "experts/registry.h"
#include "experts/routing/router_config.h"
#include "experts/routing/testing.h"

namespace sluice::experts {
namespace {

constexpr Parts kSlices = Part::kMsb | Part::kLsb;
constexpr std::uint32_t kLayers = 3;

// Experts of one layer are alike; deeper layers have larger ones.
class LayerSizes final : public ExpertSizes {
 public:
  explicit LayerSizes(Family family) : family_(family) {}
  ExpertBytes bytes(ExpertId id) const override {
    const Bytes unit = 2 + id.layer;
    if (family_ == Family::kSliced) return {.msb = 2 * unit, .lsb = unit};
    return {.full = 4 * unit, .sm = 2 * unit, .exp = unit};
  }

 private:
  Family family_;
};

// One run to be decided.
struct Setting {
  Family family = Family::kSplit;
  const CachePolicy* cache = nullptr;
  std::string_view router, prefetch;
  PrecisionMode precision = PrecisionMode::kFull;
  ConstraintMode constraint = ConstraintMode::kNone;
  bool limits_loss = false, by_layer = false, whole_layers = false;
  bool given = false;  // the routing is given, as in a replay
  std::uint32_t experts = 8, top_k = 2;
  std::uint64_t seed = 0;

  std::string name() const {
    std::ostringstream text;
    text << cache->name << ' ' << router << ' ' << precision_name(precision) << ' '
         << constraint_name(constraint) << ' ' << prefetch << (limits_loss ? " loss" : "")
         << (by_layer ? " by layer" : "") << (whole_layers ? " whole layers" : "") << (given ? " given" : "")
         << " of " << experts << ", seed " << seed;
    return text.str();
  }
};

SlicesConfig slices_of(const Setting& setting) {
  std::mt19937_64 random(setting.seed);
  SlicesConfig slices;
  const bool low = setting.precision == PrecisionMode::kLow;
  if (!setting.limits_loss || low) slices.rules.lsb_miss = static_cast<LsbMiss>(random() % 3);
  if (setting.limits_loss && !low) slices.rules.lsb_miss = LsbMiss::kFetch;
  slices.initial = static_cast<InitialSlices>(random() % 4);
  if (low && slices.initial == InitialSlices::kLastLayer) slices.initial = InitialSlices::kEmpty;
  slices.warmup.rho = low ? 0 : .5;
  return slices;
}

bool allowed(const Setting& setting) {
  const SlicesConfig slices = slices_of(setting);
  const Named<RouterPolicy> router(setting.router);
  try {
    check_combination({.family = setting.family,
                       .routers = {&router, 1},
                       .cache = setting.cache,
                       .precision = setting.precision,
                       .constraint = setting.constraint,
                       .prefetch = setting.prefetch,
                       .whole_layers = setting.whole_layers,
                       .slices = &slices,
                       .loss_limited = setting.limits_loss,
                       .residual = true,
                       .transitions = true});
    return true;
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kUsage);
    return false;
  }
}

LossContract contract() {
  LossContract contract;
  contract.model.precision = contract.model.precision_upper = LossCurve({{1, .1}});
  contract.model.routing = contract.model.routing_upper = LossCurve({{1, .2}});
  contract.model.both = contract.model.both_upper = 1;
  contract.limit = .04;
  contract.planned_low = .1;
  return contract;
}

std::unique_ptr<Cache> cache_of(const Setting& setting, Bytes capacity, Bytes largest) {
  CacheConfig config;
  const bool packed = setting.family == Family::kSplit && setting.seed % 2 == 0;
  config.keep = packed ? Part::kSm | Part::kExp : Parts(Part::kFull);
  if (setting.family == Family::kSliced)
    config.keep = setting.cache->sliced ? kSlices : least_parts(setting.precision);
  config.seed = setting.seed;
  config.slices = slices_of(setting);
  if (setting.cache->pooled) {
    const auto slots = static_cast<std::uint32_t>(capacity / (largest * kLayers));
    config.pools.slots = {{.f = (slots + 3) / 4, .c = (slots + 2) / 4, .s = (slots + 1) / 4, .e = slots / 4}};
    config.pools.rules.delta = setting.seed % 3;
  }
  return make_cache(setting.cache->name, config);
}

// What followed what in another text: anything.
ExpertTransitions random_transitions(const Setting& setting) {
  std::mt19937_64 random(setting.seed + 3);
  ExpertTransitions transitions(kLayers, setting.experts);
  for (int token = 0; token < 30; ++token) {
    const std::uint16_t here[] = {static_cast<std::uint16_t>(random() % setting.experts)},
                        next[] = {static_cast<std::uint16_t>(random() % setting.experts)};
    transitions.add(static_cast<std::uint32_t>(random() % (kLayers - 1)), here, next);
  }
  return transitions;
}

LayerPolicies policies_of(const Setting& setting, const ExpertSizes& sizes) {
  std::mt19937_64 random(setting.seed + 1);
  LayerPolicies policies;
  policies.precision = {setting.precision, {.theta = .45}};
  if (setting.limits_loss) policies.guard = std::make_unique<LossGuard>(contract());
  if (setting.family == Family::kSliced || setting.constraint != ConstraintMode::kNone) {
    ConstraintConfig config{
        .mode = setting.constraint, .limit = .1, .lambda = .3, .top_j = 1, .exempt_steps = 2};
    config.low = setting.family == Family::kSliced ? least_parts(setting.precision) : Parts(Part::kFull);
    config.high = setting.family == Family::kSliced ? kSlices : Parts(Part::kFull);
    policies.constraint = std::make_unique<MissConstraint>(config, sizes, policies.guard.get());
  }
  static std::deque<RoutingScript> scripts;  // of all policies, which do not own them
  static std::deque<ExpertTransitions> transitions;
  transitions.push_back(random_transitions(setting));
  scripts.push_back(random_script(kLayers, setting.experts, setting.top_k, setting.seed));
  if (!setting.given)
    policies.router = find_router(setting.router)
                          .make({.select = {.top_k = setting.top_k},
                                 .combine = {.renormalise = true},
                                 .constraint = policies.constraint.get(),
                                 .script = &scripts.back()});
  policies.placement = make_cpu_placement();
  policies.prefetch = find_prefetch(setting.prefetch).make({.seed = 7, .transitions = &transitions.back()});
  policies.whole_layers = setting.whole_layers;
  const ExpertBytes largest = sizes.bytes({kLayers - 1, 0});
  const Bytes each = std::max(largest.full, largest.msb + largest.lsb);
  const Bytes capacity = random() % (each * setting.experts * kLayers);
  for (std::uint32_t i = 0; i < (setting.by_layer ? kLayers : 1); ++i)
    policies.residencies.push_back(
        std::make_unique<Residency>(cache_of(setting, capacity, each), sizes, capacity));
  return policies;
}

// What was decided about one event, as plain values.
struct Decided {
  Routing routing;
  std::map<ExpertId, std::uint32_t> tokens;
  std::string outcome, fetch;
  std::map<ExpertId, std::uint32_t> fetch_tokens;
  std::size_t assigned = 0;
  std::vector<std::uint8_t> is_low;
  double low_share = 0;
};

std::string text_of(const EventOutcome& outcome) {
  std::ostringstream text;
  for (const auto* used : {&outcome.hits, &outcome.misses}) {
    text << (used == &outcome.hits ? "hit" : " miss");
    for (const Admission& one : *used)
      text << ' ' << one.id.layer << '/' << one.id.index << ':' << +one.before.bits() << '>'
           << +one.parts.bits() << '?' << +one.asked.bits() << '=' << +one.view.bits();
  }
  text << " out";
  for (const Eviction& gone : outcome.evicted)
    text << ' ' << gone.id.layer << '/' << gone.id.index << ':' << +gone.parts.bits();
  text << " reduced";
  for (ExpertId id : outcome.reduced) text << ' ' << id.layer << '/' << id.index;
  text << " updates";
  for (const Update& one : outcome.updates) text << ' ' << one.id.layer << '/' << one.id.index;
  text << " trimmed " << outcome.trimmed;
  return text.str();
}

std::string text_of(std::span<const PartRequest> requests) {
  std::ostringstream text;
  for (const PartRequest& one : requests)
    text << one.id.layer << '/' << one.id.index << ':' << +one.parts.bits() << ' ';
  return text.str();
}

std::string text_of(const Routing& routing) {
  std::ostringstream text;
  text << std::hexfloat;
  for (const Choice& one : routing.choices)
    text << one.expert << ',' << static_cast<int>(one.precision) << ',' << one.weight << ' ';
  for (const std::uint32_t begin : routing.begin) text << '|' << begin;
  for (const std::uint16_t exact : routing.exact) text << ' ' << exact;
  for (const std::uint32_t begin : routing.exact_begin) text << '|' << begin;
  return text.str();
}

// The sequence once more, without a thought for speed: route, set precisions, tell the guard, group, ask the
// constraint, ask the residency, tell the constraint and the guard.
class Plain {
 public:
  Plain(LayerPolicies policies, const Setting& setting) : p_(std::move(policies)), setting_(setting) {}

  void begin_step(bool prompt, std::span<const SequenceSpan> spans) {
    if (p_.constraint) p_.constraint->begin_step(spans);
    tries_ = reads_ahead() && !prompt;
    const bool drafts = !prompt && spans[0].tokens > 1;  // not on trial
    if (drafts)
      allowed_ = !tries_ || !trial_.decided() || trial_.pays();
    else
      allowed_ = !tries_ || trial_.begin_step();
    as_asked_ = !drafts;
  }
  void end_step(const StepCost& cost) {
    if (p_.constraint) p_.constraint->end_step();
    if (tries_ && as_asked_) trial_.end_step(cost.seconds, cost.needed, cost.wasted);
  }

  Decided event(const ScoresView& scores, const Routing* given) {
    Decided decided;
    Residency& residency = p_.residency(scores.layer);
    const bool sliced = setting_.precision != PrecisionMode::kFull;
    if (given != nullptr)
      decided.routing = *given;
    else
      p_.router->route(scores, residency, decided.routing);
    set_precision(p_.precision, decided.routing);
    const bool prompt = scores.spans[0].kind == StepKind::kPrompt;
    if (!prompt) {
      const double before = lost_.mass_lost;
      lost_.add(scores, decided.routing, scores.spans[0]);
      if (p_.guard) p_.guard->add_routing(scores.tokens, lost_.mass_lost - before);
      if (p_.guard && setting_.precision == PrecisionMode::kDbsc) p_.guard->limit_precision(decided.routing);
    }
    std::vector<std::uint32_t> count;
    std::vector<ExpertId> ids;
    for (const Choice& choice : decided.routing.choices)
      decided.tokens[{static_cast<std::uint16_t>(scores.layer), choice.expert}] += 1;
    for (const auto& [id, tokens] : decided.tokens) ids.push_back(id), count.push_back(tokens);
    decided.assigned = ids.size();
    SliceDemands demands;
    SliceDemand demand;
    if (sliced) {
      demands.gather(scores, decided.routing);
      demand = demands.demand();
      if (p_.constraint && !prompt) demand.lsb_allowance = p_.constraint->lsb_allowance(ids, residency);
    }
    std::vector<std::uint32_t> of_layer(scores.experts);
    std::vector<float> means;
    for (const Choice& choice : decided.routing.choices) ++of_layer[choice.expert];
    for (std::size_t e = 0; e < scores.experts; ++e) {
      double sum = 0;
      for (std::size_t t = 0; t < scores.tokens; ++t) sum += scores.scores[t * scores.experts + e];
      means.push_back(static_cast<float>(sum / scores.tokens));
    }
    const EventOutcome& outcome = residency.on_event(ids, means, count, demand,
                                                     {.layer = scores.layer,
                                                      .step = prompt ? StepKind::kPrompt : StepKind::kDecode,
                                                      .layer_tokens = of_layer,
                                                      .tokens = static_cast<std::uint32_t>(scores.tokens)});
    if (p_.constraint && !prompt) p_.constraint->on_event(outcome);
    decided.outcome = decided.fetch = text_of(outcome);
    decided.fetch_tokens = decided.tokens;
    if (p_.whole_layers) widen(outcome, scores.layer, decided);
    if (sliced && !prompt) find_low(outcome, scores, decided);
    return decided;
  }

  ReadAhead verdict(const AheadBytes& now) {
    if (!allowed_)
      return verdict_ = trial_.decided() && !trial_.pays() ? ReadAhead::kPaused : ReadAhead::kOff;
    const bool go = guard_.allows(now.used - ahead_.used, now.delayed - ahead_.delayed);
    ahead_ = now;
    as_asked_ = as_asked_ && go;
    return verdict_ = go ? ReadAhead::kOn : ReadAhead::kPaused;
  }
  // `again`: the layer has been computed. Empty text: nothing is asked.
  std::optional<std::string> ahead(const ScoresView& scores, const Routing& routing, const ScoresView& next,
                                   bool again) {
    const PredictorKind kind = p_.prefetch->predictor();
    const bool prompt = scores.spans[0].kind == StepKind::kPrompt;
    const bool by_scores = kind != PredictorKind::kNone && scores.layer + 1 < kLayers &&
                           !(prompt && kind == PredictorKind::kPartial);
    const bool twice = by_scores && p_.prefetch->predictor() == PredictorKind::kStream;
    if (verdict_ != ReadAhead::kOn || (again && !twice)) return std::nullopt;
    LayerState state{
        .layer = scores.layer, .layers = kLayers, .experts = setting_.experts, .routing = &routing};
    state.residency = &p_.residency(std::min(scores.layer + 1, kLayers - 1));
    state.next = by_scores ? &next : nullptr;
    state.top_k = setting_.top_k;
    std::vector<PartRequest> out;
    p_.prefetch->propose(state, out);
    for (const PartRequest& one : out) EXPECT_EQ(one.tier, Tier::kHost);
    if (setting_.precision != PrecisionMode::kFull)
      for (PartRequest& one : out) {
        one.parts = Part::kMsb;
        if (prompt || setting_.precision == PrecisionMode::kHigh) one.parts = kSlices;
      }
    return text_of(out);
  }

  const LayerPolicies& policies() const { return p_; }
  const RoutingChanges& lost() const { return lost_; }

 private:
  bool reads_ahead() const { return p_.prefetch->name() != "none"; }

  void widen(const EventOutcome& outcome, std::uint32_t layer, Decided& decided) {
    EventOutcome all = outcome;
    for (std::uint16_t e = 0; e < setting_.experts; ++e) {
      const ExpertId id{static_cast<std::uint16_t>(layer), e};
      if (decided.fetch_tokens.emplace(id, 0).second)
        all.misses.push_back({id, p_.residency(layer).parts(id)});
    }
    std::ranges::sort(all.misses, {}, &Admission::id);
    decided.fetch = text_of(all);
  }

  void find_low(const EventOutcome& outcome, const ScoresView& scores, Decided& decided) {
    decided.is_low.resize(setting_.experts);
    for (const auto* used : {&outcome.hits, &outcome.misses})
      for (const Admission& one : *used) decided.is_low[one.id.index] = one.view == Parts(Part::kMsb);
    for (std::uint32_t t = 0; t < scores.tokens; ++t) {
      double low = 0, sum = 0;
      for (const Choice& choice : decided.routing.token(t)) {
        sum += choice.weight;
        if (decided.is_low[choice.expert]) low += choice.weight;
      }
      if (sum > 0) decided.low_share += low / sum;
    }
    if (p_.guard) p_.guard->add_precision(scores.tokens, decided.low_share);
  }

  LayerPolicies p_;
  const Setting& setting_;
  RoutingChanges lost_;
  PrefetchTrial trial_;
  PrefetchGuard guard_;
  AheadBytes ahead_;
  ReadAhead verdict_ = ReadAhead::kOn;
  bool tries_ = false, allowed_ = true, as_asked_ = true;
};

// Logits of some tokens and their softmax; ties happen.
struct RandomScores {
  std::vector<float> logits, scores;
  SequenceSpan span;
  ScoresView view;

  RandomScores(std::mt19937_64& random, std::uint32_t layer, std::uint32_t experts, std::uint32_t tokens,
               bool prompt) {
    for (std::uint32_t t = 0; t < tokens; ++t) {
      double sum = 0;
      std::vector<double> row;
      for (std::uint32_t e = 0; e < experts; ++e) {
        logits.push_back(static_cast<float>(random() % 64) / 16);
        row.push_back(std::exp(double{logits.back()}));
        sum += row.back();
      }
      for (double one : row) scores.push_back(static_cast<float>(one / sum));
    }
    span = {.tokens = tokens, .kind = prompt ? StepKind::kPrompt : StepKind::kDecode};
    view = {.layer = layer,
            .experts = experts,
            .tokens = tokens,
            .logits = logits,
            .scores = scores,
            .spans = {&span, 1}};
  }
  RandomScores(const RandomScores&) = delete;
};

Decided taken(const LayerDecision& decision) {
  Decided decided;
  decided.routing = decision.routing;
  for (std::size_t i = 0; i < decision.experts.size(); ++i)
    decided.tokens[decision.experts[i]] = decision.tokens[i];
  EXPECT_TRUE(std::ranges::is_sorted(decision.experts));
  decided.outcome = text_of(*decision.outcome);
  decided.fetch = text_of(*decision.fetch);
  for (std::size_t i = 0; i < decision.fetch_demand.experts.size(); ++i)
    decided.fetch_tokens[decision.fetch_demand.experts[i]] = decision.fetch_demand.tokens[i];
  decided.assigned = decision.assignment.unit.size();
  decided.is_low = decision.is_low;
  decided.low_share = decision.low_share;
  return decided;
}

// What the runs together have met, so that no case is tested by name alone.
struct Met {
  std::uint64_t events = 0, evicted = 0, trimmed = 0, replaced = 0, raised = 0, low = 0, asked_ahead = 0,
                paused = 0, off = 0, over_budget = 0;
};

class Comparison {
 public:
  Comparison(const Setting& setting, Met& met)
      : setting_(setting),
        met_(met),
        sizes_(setting.family),
        plain_(policies_of(setting, sizes_), setting_),
        decider_(policies_of(setting, sizes_), {kLayers, setting.top_k}),
        random_(setting.seed + 2) {}

  void compare() {
    for (int step = 0; step < 40 && !testing::Test::HasFailure(); ++step) {
      const bool prompt = step % 15 < 2;
      const auto tokens = static_cast<std::uint32_t>(1 + random_() % (prompt ? 6 : 2));
      const SequenceSpan span{.tokens = tokens, .kind = prompt ? StepKind::kPrompt : StepKind::kDecode};
      plain_.begin_step(prompt, {&span, 1});
      decider_.begin_step({&span, 1});
      for (std::uint32_t layer = 0; layer < kLayers; ++layer) event(layer, tokens, prompt);
      const StepCost cost{.seconds = 1e-3 * static_cast<double>(1 + random_() % 9),
                          .needed = random_() % 1000,
                          .wasted = random_() % 100};
      plain_.end_step(cost);
      decider_.end_step(cost);
    }
    compare_ends();
  }

 private:
  void event(std::uint32_t layer, std::uint32_t tokens, bool prompt) {
    const RandomScores scores(random_, layer, setting_.experts, tokens, prompt);
    const RandomScores next(random_, layer + 1, setting_.experts, tokens, false);
    const std::optional<Routing> given = setting_.given ? std::optional(exact(scores.view)) : std::nullopt;
    const Decided expected = plain_.event(scores.view, given ? &*given : nullptr);
    const Routing& routing =
        given ? decider_.follow(scores.view, given->choices, given->begin) : decider_.route(scores.view);
    EXPECT_EQ(text_of(routing), text_of(expected.routing));
    const LayerDecision& decision = decider_.decide();
    const Decided found = taken(decision);
    EXPECT_EQ(text_of(found.routing), text_of(expected.routing));
    EXPECT_EQ(found.tokens, expected.tokens);
    EXPECT_EQ(found.outcome, expected.outcome);
    EXPECT_EQ(found.fetch, expected.fetch);
    EXPECT_EQ(found.fetch_tokens, expected.fetch_tokens);
    EXPECT_EQ(found.assigned, expected.assigned);
    EXPECT_EQ(found.is_low, expected.is_low);
    EXPECT_EQ(found.low_share, expected.low_share);
    ++met_.events;
    met_.evicted += decision.outcome->evicted.size();
    met_.trimmed += decision.outcome->trimmed;
    met_.low += decision.low_share > 0 ? 1 : 0;
    if (slices_of(setting_).rules.lsb_miss == LsbMiss::kFetchIfBudget)
      for (const Admission& one : decision.outcome->misses) met_.over_budget += one.downgraded() ? 1 : 0;
    ahead_.used += random_() % 50;
    ahead_.delayed += random_() % (setting_.seed % 2 == 0 ? 50 : 500);
    const ReadAhead verdict = decider_.may_look_ahead(ahead_);
    EXPECT_EQ(verdict, plain_.verdict(ahead_));
    met_.paused += verdict == ReadAhead::kPaused ? 1 : 0;
    met_.off += verdict == ReadAhead::kOff ? 1 : 0;
    for (const bool again : {false, true}) {
      std::optional<std::string> named;
      if (again ? decider_.looks_twice() : verdict == ReadAhead::kOn)
        named =
            text_of(decider_.look_ahead(decider_.predictor() != PredictorKind::kNone ? &next.view : nullptr));
      EXPECT_EQ(named, plain_.ahead(scores.view, expected.routing, next.view, again));
      met_.asked_ahead += named && !named->empty() ? 1 : 0;
    }
  }

  Routing exact(const ScoresView& scores) const {
    Routing routing;
    make_exact_router({.top_k = setting_.top_k}, {})
        ->route(scores, *plain_.policies().residencies.front(), routing);
    return routing;
  }

  void compare_ends() {
    const LayerPolicies &found = decider_.policies(), &expected = plain_.policies();
    for (std::size_t i = 0; i < expected.residencies.size(); ++i)
      EXPECT_EQ(found.residencies[i]->decision_hash(), expected.residencies[i]->decision_hash());
    EXPECT_EQ(decider_.decode_changes().mass_lost, plain_.lost().mass_lost);
    EXPECT_EQ(decider_.decode_changes().substituted, plain_.lost().substituted);
    EXPECT_EQ(decider_.decode_changes().tokens, plain_.lost().tokens);
    EXPECT_GT(decider_.changes().tokens, plain_.lost().tokens);
    if (expected.constraint) {
      EXPECT_EQ(found.constraint->account().missed, expected.constraint->account().missed);
      EXPECT_EQ(found.constraint->account().requested, expected.constraint->account().requested);
      EXPECT_EQ(found.constraint->lambda(), expected.constraint->lambda());
      EXPECT_EQ(found.constraint->replaced(), expected.constraint->replaced());
      met_.replaced += expected.constraint->replaced();
    }
    if (expected.guard) {
      EXPECT_EQ(found.guard->mass_lost(), expected.guard->mass_lost());
      EXPECT_EQ(found.guard->low_share(), expected.guard->low_share());
      EXPECT_EQ(found.guard->raised(), expected.guard->raised());
      met_.raised += expected.guard->raised();
    }
  }

  const Setting setting_;
  Met& met_;
  const LayerSizes sizes_;
  Plain plain_;
  LayerDecider decider_;
  std::mt19937_64 random_;
  AheadBytes ahead_;
};

constexpr std::uint64_t kSeed = 20261124;

// A run of these names; the rest is drawn. `variant` 0 to 3: both values of two switches.
Setting setting_of(Family family, const CachePolicy& cache, const RouterPolicy& router, int precision,
                   int constraint, int variant, std::uint64_t seed) {
  const bool sliced = family == Family::kSliced, first = (variant & 1) != 0;
  return {.family = family,
          .cache = &cache,
          .router = router.name,
          .prefetch = prefetch_policies()[seed % prefetch_policies().size()].name,
          .precision = static_cast<PrecisionMode>(precision),
          .constraint = static_cast<ConstraintMode>(constraint),
          .limits_loss = sliced && first,
          .by_layer = (variant & 2) != 0,
          .whole_layers = !sliced && first,
          .given = router.name == "exact" && !(sliced && first) && seed / 4 % 2 == 0,
          .experts = static_cast<std::uint32_t>(4 + seed % 9),
          .top_k = static_cast<std::uint32_t>(1 + seed % 3),
          .seed = seed};
}

// Calls `run` for every combination that is allowed, several times for slices, which have more to draw;
// returns how many there are.
template <class Work>
int over_all(const Work& run) {
  int count = 0;
  std::uint64_t seed = kSeed;
  for (Family family : {Family::kRaw, Family::kSplit, Family::kSliced})
    for (const CachePolicy& cache : cache_policies())
      for (const RouterPolicy& router : router_policies())
        for (int precision = 0; precision < 4; ++precision)
          for (int constraint = 0; constraint < 4; ++constraint)
            for (int variant = 0; variant < 4; ++variant) {
              if (cache.oracle ||
                  !allowed(setting_of(family, cache, router, precision, constraint, variant, seed)))
                continue;
              ++count;
              for (int round = 0; round < (family == Family::kSliced ? 4 : 1); ++round)
                run(setting_of(family, cache, router, precision, constraint, variant, seed++));
            }
  return count;
}

TEST(LayerDecider, DecidesAsThePlainSequenceDoes) {
  std::cout << "seed " << kSeed << '\n';
  Met met;
  const int combinations = over_all([&](const Setting& setting) {
    if (testing::Test::HasFailure()) return;
    SCOPED_TRACE(setting.name());
    Comparison(setting, met).compare();
  });
  std::cout << combinations << " combinations, " << met.events << " events, " << met.evicted << " evictions, "
            << met.replaced << " experts replaced\n";
  EXPECT_GT(combinations, 300);
  // Nothing is equal for want of cases.
  for (const std::uint64_t count : {met.evicted, met.trimmed, met.replaced, met.raised, met.low,
                                    met.over_budget, met.asked_ahead, met.paused, met.off})
    EXPECT_GT(count, 50u);
}

// A cache that keeps nothing and remembers what it was told.
class Listener final : public Cache {
 public:
  explicit Listener(std::vector<float>& scores) : scores_(scores) {}
  void on_step(const StepReport& report) override {
    scores_.assign(report.scores.begin(), report.scores.end());
  }
  Parts wanted(ExpertId) const override { return {}; }
  void victims(Bytes, const PinnedView&, std::vector<Eviction>&) override {}
  void on_insert(ExpertId, Parts, Bytes) override {}
  void on_evict(ExpertId, Parts) override {}
  std::string name() const override { return "listener"; }

 private:
  std::vector<float>& scores_;
};

LayerPolicies listening(std::vector<float>& scores, const ExpertSizes& sizes) {
  LayerPolicies policies;
  policies.router = make_exact_router({.top_k = 1}, {});
  policies.residencies.push_back(std::make_unique<Residency>(std::make_unique<Listener>(scores), sizes, 0));
  return policies;
}

TEST(LayerDecider, CachesAreToldTheMeanScoresOfTheTokens) {
  const LayerSizes sizes(Family::kRaw);
  std::vector<float> told;
  LayerDecider decider(listening(told, sizes), {1, 1});
  const std::vector<float> scores = {.5f, .25f, .25f, .125f, .75f, .125f};
  const SequenceSpan span{.tokens = 2, .kind = StepKind::kPrompt};
  decider.begin_step({&span, 1});
  decider.route(
      {.layer = 0, .experts = 3, .tokens = 2, .logits = scores, .scores = scores, .spans = {&span, 1}});
  EXPECT_TRUE(told.empty());  // no residency has been asked yet
  decider.decide();
  EXPECT_THAT(told, testing::ElementsAre(.3125f, .5f, .1875f));
}

// Remembers what it saw, and sends experts with more than one token to the device.
class WatchingPlacement final : public Placement {
 public:
  struct Seen {
    StepKind phase = StepKind::kPrompt;
    std::vector<double> t_host, t_device, transfer;
    std::vector<std::uint8_t> on_device;
    std::optional<std::uint32_t> slots;
  };
  explicit WatchingPlacement(Seen& seen) : seen_(seen) {}
  void assign(const Demand& demand, const PlacementCosts& costs, Assignment& out) override {
    seen_ = {.phase = costs.phase,
             .t_host = {costs.t_host.begin(), costs.t_host.end()},
             .t_device = {costs.t_device.begin(), costs.t_device.end()},
             .transfer = {costs.transfer.begin(), costs.transfer.end()},
             .on_device = {costs.on_device.begin(), costs.on_device.end()},
             .slots = costs.slots};
    out.unit.clear();
    for (const std::uint32_t tokens : demand.tokens)
      out.unit.push_back(tokens > 1 ? Unit::kDevice : Unit::kHost);
  }
  std::string name() const override { return "watching"; }

 private:
  Seen& seen_;
};

TEST(LayerDecider, PlacementSeesCostsResidencyAndPhaseAndTheDeviceDecidesAboutItsExperts) {
  const LayerSizes sizes(Family::kRaw);
  WatchingPlacement::Seen seen;
  LayerPolicies policies;
  policies.placement = std::make_unique<WatchingPlacement>(seen);
  policies.residencies.push_back(std::make_unique<Residency>(make_cache("none", {}), sizes, 0));
  policies.device.emplace().residencies.push_back(
      std::make_unique<Residency>(make_cache("lru", {}), sizes, 1000, Tier::kDevice));
  policies.device->slots = 7;
  policies.costs.run = {.fixed = 1, .per_token = 10};
  policies.costs.device.run = {.fixed = 2, .per_token = .5};
  policies.costs.device.transfer = 30;
  LayerDecider decider(std::move(policies), {1, 2});
  const ExpertId ids[] = {{0, 1}, {0, 4}, {0, 6}};
  const std::uint32_t tokens[] = {3, 1, 2};
  const SequenceSpan span{.tokens = 1, .kind = StepKind::kDecode};
  decider.begin_step({&span, 1});
  decider.follow(0, {ids, tokens});
  const LayerDecision& first = decider.decide();
  EXPECT_EQ(seen.phase, StepKind::kDecode);
  EXPECT_THAT(seen.t_host, testing::ElementsAre(31, 11, 21));
  EXPECT_THAT(seen.t_device, testing::ElementsAre(3.5, 2.5, 3));
  EXPECT_THAT(seen.transfer, testing::ElementsAre(30, 30, 30));
  EXPECT_THAT(seen.on_device, testing::ElementsAre(0, 0, 0));
  EXPECT_EQ(seen.slots, 7u);
  EXPECT_THAT(first.assignment.unit, testing::ElementsAre(Unit::kDevice, Unit::kHost, Unit::kDevice));
  ASSERT_NE(first.device, nullptr);
  EXPECT_EQ(first.outcome->tier, Tier::kHost);
  // Both are copied, the longer computation first, and stay; the host must have all three.
  ASSERT_EQ(first.device->uses.size(), 2u);
  EXPECT_EQ(first.device->uses[0].id, ids[0]);
  EXPECT_EQ(first.device->uses[1].id, ids[2]);
  for (const DeviceUse& use : first.device->uses) {
    EXPECT_EQ(use.from, DeviceBytes::kLink);
    EXPECT_TRUE(use.stays);
    EXPECT_EQ(use.remaining, 30);
  }
  EXPECT_EQ(first.outcome->misses.size(), 3u);
  decider.follow(0, {ids, tokens});
  const LayerDecision& second = decider.decide();
  EXPECT_THAT(seen.transfer, testing::ElementsAre(0, 30, 0));
  EXPECT_THAT(seen.on_device, testing::ElementsAre(1, 0, 1));
  EXPECT_EQ(second.device->uses.size(), 2u);
  EXPECT_EQ(second.device->uses[0].from, DeviceBytes::kSlot);
  // What the device has needs nothing of the host.
  ASSERT_EQ(second.outcome->misses.size(), 1u);
  EXPECT_EQ(second.outcome->misses[0].id, ids[1]);
  EXPECT_EQ(second.fetch_demand.experts.size(), 1u);
}

// Copies fail: what the device has by its residency, and not in truth, is fetched to the host as well.
TEST(LayerDecider, WhatADeviceHasLostIsFetchedToTheHost) {
  const LayerSizes sizes(Family::kRaw);
  WatchingPlacement::Seen seen;
  LayerPolicies policies;
  policies.placement = std::make_unique<WatchingPlacement>(seen);
  policies.residencies.push_back(std::make_unique<Residency>(make_cache("lru", {}), sizes, 16));
  policies.device.emplace().residencies.push_back(
      std::make_unique<Residency>(make_cache("lru", {}), sizes, 1000, Tier::kDevice));
  LayerDecider decider(std::move(policies), {1, 2});
  const ExpertId ids[] = {{0, 1}, {0, 3}, {0, 4}, {0, 6}};
  const std::uint32_t tokens[] = {3, 2, 1, 2};
  const SequenceSpan span{.tokens = 1, .kind = StepKind::kDecode};
  const auto decide = [&]() -> const LayerDecision& {
    decider.begin_step({&span, 1});
    decider.follow(0, {ids, tokens});
    return decider.decide();
  };
  decide();
  const LayerDecision& decision = decide();
  ASSERT_EQ(decision.device->uses.size(), 3u);
  EXPECT_THAT(decision.fetch_demand.experts, testing::ElementsAre(ids[2]));
  const std::string outcome = text_of(*decision.outcome);
  decider.fetch_lost({});
  EXPECT_EQ(decision.fetch, decision.outcome);
  // In the order of the device's plan, as the engine finds them.
  const ExpertId lost[] = {ids[3], ids[0]};
  decider.fetch_lost(lost);
  EXPECT_THAT(decision.fetch_demand.experts, testing::ElementsAre(ids[0], ids[2], ids[3]));
  EXPECT_THAT(decision.fetch_demand.tokens, testing::ElementsAre(3u, 1u, 2u));
  std::vector<ExpertId> missed;
  const Residency& host = decider.policies().residency(0);
  for (const Admission& one : decision.fetch->misses) {
    missed.push_back(one.id);
    EXPECT_TRUE(one.id == ids[2] || one.before == host.parts(one.id));
  }
  for (const Admission& one : decision.fetch->hits) missed.push_back(one.id);
  EXPECT_THAT(missed, testing::UnorderedElementsAre(ids[0], ids[2], ids[3]));
  EXPECT_TRUE(std::ranges::is_sorted(decision.fetch->misses, {}, &Admission::id));
  EXPECT_EQ(text_of(*decision.outcome), outcome);  // residency does not change
  const LayerDecision& next = decide();            // … and the next event knows nothing of it
  EXPECT_EQ(next.fetch, next.outcome);
  EXPECT_THAT(next.fetch_demand.experts, testing::ElementsAre(ids[2]));
}

TEST(LayerDeciderDeath, OnlyWhatTheDeviceWasToHaveCanBeLost) {
  const LayerSizes sizes(Family::kRaw);
  LayerPolicies policies;
  policies.residencies.push_back(std::make_unique<Residency>(make_cache("none", {}), sizes, 0));
  LayerDecider decider(std::move(policies), {1, 1});
  const ExpertId ids[] = {{0, 2}};
  const std::uint32_t tokens[] = {1};
  const SequenceSpan span{.tokens = 1};
  decider.begin_step({&span, 1});
  decider.follow(0, {ids, tokens});
  decider.decide();
  EXPECT_DEATH(decider.fetch_lost(ids), "no device was to have");
}

// What is ahead goes in two hops: to the host what neither tier has, to the device what the host has.
TEST(LayerDecider, PrefetchesOfBothTiersDivideWhatIsMissing) {
  constexpr std::uint32_t kExperts = 6;
  const LayerSizes sizes(Family::kRaw);
  for (const bool host_may_lack : {true, false}) {
    SCOPED_TRACE(host_may_lack);
    WatchingPlacement::Seen seen;
    LayerPolicies policies;
    policies.placement = std::make_unique<WatchingPlacement>(seen);
    policies.residencies.push_back(std::make_unique<Residency>(make_cache("lru", {}), sizes, Bytes{1} << 30));
    policies.prefetch = find_prefetch("all-next").make({});
    DevicePolicies& device = policies.device.emplace();
    device.residencies.push_back(
        std::make_unique<Residency>(make_cache("lru", {}), sizes, Bytes{1} << 30, Tier::kDevice));
    device.prefetch = find_prefetch("all-next").make({});
    device.host_may_lack = host_may_lack;
    LayerDecider decider(std::move(policies), {2, 2});
    const std::vector<float> scores(2 * kExperts, 1.f / kExperts);
    const SequenceSpan span{.tokens = 2, .kind = StepKind::kDecode};
    const auto event = [&](std::uint32_t layer, const std::vector<std::uint16_t>& chosen) {
      std::vector<Choice> choices;  // two of each token
      for (const std::uint16_t expert : chosen) choices.push_back({.expert = expert, .weight = .5f});
      decider.begin_step({&span, 1});
      const std::uint32_t begin[] = {0, 2, 4};
      decider.follow(
          {.layer = layer, .experts = kExperts, .tokens = 2, .scores = scores, .spans = {&span, 1}}, choices,
          begin);
      decider.decide();
    };
    const auto ids = [](std::span<const PartRequest> requests, Tier tier) {
      std::vector<int> found;
      for (const PartRequest& one : requests) {
        EXPECT_EQ(one.id.layer, 1);
        EXPECT_EQ(one.tier, tier);
        found.push_back(one.id.index);
      }
      return found;
    };
    event(1, {1, 4, 1, 5});  // 1 on both tiers, 4 and 5 on the host
    event(0, {0, 1, 0, 1});
    ASSERT_TRUE(decider.prefetches_to_device());
    EXPECT_THAT(ids(decider.look_ahead_on_device(nullptr), Tier::kDevice),
                testing::UnorderedElementsAreArray(host_may_lack ? std::vector<int>{4, 5}
                                                                 : std::vector<int>{0, 2, 3, 4, 5}));
    EXPECT_THAT(ids(decider.look_ahead(nullptr), Tier::kHost), testing::UnorderedElementsAre(0, 2, 3));
  }
}

// The event behind one of an encoder's layer is that layer's next chunk, so nothing is read ahead there.
TEST(LayerDecider, LayersOfAnEncoderPredictNothing) {
  const LayerSizes sizes(Family::kRaw);
  WatchingPlacement::Seen seen;
  LayerPolicies policies;
  policies.placement = std::make_unique<WatchingPlacement>(seen);
  policies.residencies.push_back(std::make_unique<Residency>(make_cache("lru", {}), sizes, Bytes{1} << 30));
  policies.prefetch = find_prefetch("stream").make({});
  DevicePolicies& device = policies.device.emplace();
  device.residencies.push_back(
      std::make_unique<Residency>(make_cache("lru", {}), sizes, Bytes{1} << 30, Tier::kDevice));
  device.prefetch = find_prefetch("stream").make({});
  LayerDecider decider(std::move(policies), {.layers = 4, .top_k = 1, .encoder_layers = 2});
  const SequenceSpan span{.tokens = 2, .kind = StepKind::kPrompt};
  decider.begin_step({&span, 1});
  const ExpertId ids[] = {{0, 1}};
  const std::uint32_t tokens[] = {2};
  for (const std::uint32_t layer : {0u, 0u, 1u, 2u, 3u}) {
    SCOPED_TRACE(layer);
    decider.follow(layer, {ids, tokens});
    decider.decide();
    const PredictorKind expected = layer == 2 ? PredictorKind::kStream : PredictorKind::kNone;
    EXPECT_EQ(decider.predictor(), expected);
    EXPECT_EQ(decider.device_predictor(), expected);
  }
  decider.end_step();
  EXPECT_EQ(decider.device()->counts(StepKind::kPrompt).prefetch.asked, 1u);
}

TEST(LayerDecider, WithoutADevicePlacementSeesHostTimesAlone) {
  const LayerSizes sizes(Family::kRaw);
  WatchingPlacement::Seen seen;
  LayerPolicies policies;
  policies.placement = std::make_unique<WatchingPlacement>(seen);
  policies.residencies.push_back(std::make_unique<Residency>(make_cache("none", {}), sizes, 0));
  policies.costs.run = {.fixed = 1};
  LayerDecider decider(std::move(policies), {1, 1});
  const ExpertId ids[] = {{0, 2}};
  const std::uint32_t tokens[] = {1};
  const SequenceSpan span{.tokens = 1, .kind = StepKind::kPrompt};
  decider.begin_step({&span, 1});
  decider.follow(0, {ids, tokens});
  EXPECT_EQ(decider.decide().device, nullptr);
  EXPECT_EQ(seen.phase, StepKind::kPrompt);
  EXPECT_THAT(seen.t_host, testing::ElementsAre(1));
  EXPECT_TRUE(seen.t_device.empty() && seen.transfer.empty() && seen.on_device.empty() && !seen.slots);
}

// All experts of the layer are fetched for an event without a routing, too, and those alone are computed that
// it names.
TEST(LayerDecider, WholeLayersAreFetchedForAnEventWithoutARouting) {
  const LayerSizes sizes(Family::kRaw);
  LayerPolicies policies;
  policies.residencies.push_back(std::make_unique<Residency>(make_cache("none", {}), sizes, 0));
  policies.whole_layers = true;
  LayerDecider decider(std::move(policies), {2, 1});
  const ExpertId ids[] = {{1, 0}, {1, 2}};
  const std::uint32_t tokens[] = {3, 1};
  const SequenceSpan span{.tokens = 4, .kind = StepKind::kPrompt};
  for (int again = 0; again < 2; ++again) {
    decider.begin_step({&span, 1});
    decider.follow(1, {ids, tokens}, 4);
    const LayerDecision& decision = decider.decide();
    EXPECT_THAT(decision.experts, testing::ElementsAreArray(ids));
    EXPECT_EQ(decision.outcome->misses.size(), 2u);
    ASSERT_EQ(decision.fetch->misses.size(), 4u);
    for (std::uint16_t e = 0; e < 4; ++e) EXPECT_EQ(decision.fetch->misses[e].id, (ExpertId{1, e}));
    EXPECT_THAT(decision.fetch_demand.tokens, testing::ElementsAre(3u, 0u, 1u, 0u));
    decider.end_step();
  }
}

TEST(LayerDecider, OrdersWhatIsMissingByItsSchedulerAndCosts) {
  const LayerSizes sizes(Family::kSplit);
  LayerPolicies policies;
  policies.residencies.push_back(std::make_unique<Residency>(make_cache("none", {}), sizes, 0));
  policies.scheduler = find_scheduler("p_sorted").make();
  policies.costs.run = {.per_token = 1};
  LayerDecider decider(std::move(policies), {1, 1});
  const MissingExpert missing[] = {{.id = {0, 1}, .tensors = 1, .tokens = 1},
                                   {.id = {0, 2}, .held = Part::kExp, .tensors = 1, .tokens = 5}};
  const ReadOrder& order = decider.order(missing);
  ASSERT_EQ(order.tasks.size(), 2u);
  EXPECT_EQ(order.tasks[1].run, 5);
  EXPECT_EQ(order.tasks[1].state, State::kE);
  EXPECT_EQ(order.tasks[order.schedule.order.front()].expert, (ExpertId{0, 2}));
}

TEST(LayerDeciderDeath, CallsOutOfOrderAreFound) {
  const LayerSizes sizes(Family::kRaw);
  std::vector<float> told;
  LayerDecider decider(listening(told, sizes), {1, 1});
  EXPECT_DEATH(decider.decide(), "not been routed");
  const std::vector<float> scores = {.5f, .5f};
  const SequenceSpan span{.tokens = 1};
  const ScoresView view{
      .layer = 0, .experts = 2, .tokens = 1, .logits = scores, .scores = scores, .spans = {&span, 1}};
  EXPECT_DEATH(decider.route(view), "another kind");
  decider.begin_step(view.spans);
  decider.route(view);
  decider.decide();
  EXPECT_DEATH(decider.decide(), "not been routed");
}

}  // namespace
}  // namespace sluice::experts
