#include "experts/worlds.h"

#include <utility>

#include "base/error.h"

namespace sluice::experts {

Worlds::Worlds(std::vector<LayerPolicies> policies, const SparseShape& shape, ReadBytes read_bytes)
    : read_bytes_(std::move(read_bytes)), counts_(policies.size()) {
  for (LayerPolicies& one : policies) {
    SLUICE_CHECK(!one.device && !one.whole_layers, "a world has the host's memory alone");
    deciders_.push_back(std::make_unique<LayerDecider>(std::move(one), shape));
  }
}

void Worlds::begin_step(std::span<const SequenceSpan> spans) {
  is_prompt_ = step_kind(spans) == StepKind::kPrompt;
  SLUICE_CHECK(spans.size() == (is_prompt_ ? 1 : size()), "a step of other worlds");
  spans_.assign(spans.begin(), spans.end());
  // In each world there is one sequence, whichever sequences compute it.
  for (SequenceSpan& span : spans_) {
    SLUICE_CHECK(is_prompt_ || span.tokens == 1, "a world decodes a token at a time");
    span.sequence = 0;
    span.first_token = 0;
  }
  for (std::size_t world = 0; world < size(); ++world)
    deciders_[world]->begin_step({&spans_[is_prompt_ ? 0 : world], 1});
}

void Worlds::end_step() {
  for (std::size_t world = 0; world < size(); ++world) {
    deciders_[world]->end_step();
    if (!is_prompt_) ++counts_[world].tokens;
  }
}

const Routing& Worlds::decide(const ScoresView& scores) {
  routing_.choices.clear();
  routing_.begin.assign(1, 0);
  for (std::size_t world = 0; world < size(); ++world) {
    LayerDecider& decider = *deciders_[world];
    ScoresView own = scores;
    own.spans = {&spans_[is_prompt_ ? 0 : world], 1};
    if (!is_prompt_) {
      own.tokens = 1;
      own.logits = scores.logits.subspan(world * scores.experts, scores.experts);
      own.scores = scores.scores.subspan(world * scores.experts, scores.experts);
    }
    decider.route(own);
    const LayerDecision& decision = decider.decide();
    if (!is_prompt_) add(world, decision);
  }
  return routing_;
}

void Worlds::add(std::size_t world, const LayerDecision& decision) {
  for (Choice choice : decision.routing.choices) {
    if (!decision.is_low.empty())
      choice.precision = decision.is_low[choice.expert] != 0 ? Precision::kLow : Precision::kHigh;
    routing_.choices.push_back(choice);
  }
  routing_.begin.push_back(static_cast<std::uint32_t>(routing_.choices.size()));
  WorldCounts& counts = counts_[world];
  counts.low += decision.low_share;
  for (const auto* used : {&decision.outcome->hits, &decision.outcome->misses})
    for (const Admission& one : *used) counts.bytes += read_bytes_(one);
}

WorldCounts Worlds::counts(std::size_t world) const {
  WorldCounts counts = counts_[world];
  const RoutingChanges& changes = deciders_[world]->decode_changes();
  counts.places = changes.tokens;
  counts.mass = changes.mass_lost;
  return counts;
}

}  // namespace sluice::experts
