// What a LayerDecider decides, as values that can be compared, and the same sequence of questions once more
// without a thought for speed. For tests; production code does not include it.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <ios>
#include <map>
#include <optional>
#include <span>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "experts/decider_setting_testing.h"
#include "experts/layer_decider.h"

namespace sluice::experts {

// What was decided about one event, as plain values.
struct DecidedEvent {
  Routing routing;
  std::map<ExpertId, std::uint32_t> tokens;
  std::string outcome, fetch;
  std::map<ExpertId, std::uint32_t> fetch_tokens;
  std::size_t assigned = 0;
  std::vector<std::uint8_t> is_low;
  double low_share = 0;
};

inline std::string text_of(const EventOutcome& outcome) {
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

inline std::string text_of(std::span<const PartRequest> requests) {
  std::ostringstream text;
  for (const PartRequest& one : requests)
    text << one.id.layer << '/' << one.id.index << ':' << +one.parts.bits() << ' ';
  return text.str();
}

inline std::string text_of(const Routing& routing) {
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
class PlainDecider {
 public:
  PlainDecider(LayerPolicies policies, const DeciderSetting& setting)
      : p_(std::move(policies)), setting_(setting) {}

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

  DecidedEvent event(const ScoresView& scores, const Routing* given) {
    DecidedEvent decided;
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
    const bool by_scores = kind != PredictorKind::kNone && scores.layer + 1 < setting_.kLayers &&
                           !(prompt && kind == PredictorKind::kPartial);
    const bool twice = by_scores && p_.prefetch->predictor() == PredictorKind::kStream;
    if (verdict_ != ReadAhead::kOn || (again && !twice)) return std::nullopt;
    LayerState state{
        .layer = scores.layer, .layers = setting_.kLayers, .experts = setting_.experts, .routing = &routing};
    state.residency = &p_.residency(std::min(scores.layer + 1, setting_.kLayers - 1));
    state.next = by_scores ? &next : nullptr;
    state.top_k = setting_.top_k;
    std::vector<PartRequest> out;
    p_.prefetch->propose(state, out);
    for (const PartRequest& one : out) EXPECT_EQ(one.tier, Tier::kHost);
    if (setting_.precision != PrecisionMode::kFull)
      for (PartRequest& one : out) {
        one.parts = Part::kMsb;
        if (prompt || setting_.precision == PrecisionMode::kHigh) one.parts = setting_.kSlices;
      }
    return text_of(out);
  }

  const LayerPolicies& policies() const { return p_; }
  const RoutingChanges& lost() const { return lost_; }

 private:
  bool reads_ahead() const { return p_.prefetch->prefetches(); }

  void widen(const EventOutcome& outcome, std::uint32_t layer, DecidedEvent& decided) {
    EventOutcome all = outcome;
    for (std::uint16_t e = 0; e < setting_.experts; ++e) {
      const ExpertId id{static_cast<std::uint16_t>(layer), e};
      if (decided.fetch_tokens.emplace(id, 0).second)
        all.misses.push_back({id, p_.residency(layer).parts(id)});
    }
    std::ranges::sort(all.misses, {}, &Admission::id);
    decided.fetch = text_of(all);
  }

  void find_low(const EventOutcome& outcome, const ScoresView& scores, DecidedEvent& decided) {
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
  const DeciderSetting& setting_;
  RoutingChanges lost_;
  PrefetchTrial trial_;
  PrefetchGuard guard_;
  AheadBytes ahead_;
  ReadAhead verdict_ = ReadAhead::kOn;
  bool tries_ = false, allowed_ = true, as_asked_ = true;
};

}  // namespace sluice::experts
