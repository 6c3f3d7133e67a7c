#include "serve/engine/expert_watch.h"

#include <algorithm>
#include <cmath>

#include "engine/engine_device.h"
#include "engine/run_report.h"
#include "experts/core/state_order.h"
#include "experts/layer_decider.h"
#include "fetch/memory/expert_store.h"
#include "serve/metric_table.h"
#include "store/checkpoint.h"

namespace sluice::serve {
namespace {

using experts::Part;
using experts::Parts;

constexpr double kHalfLife = 8;  // seconds in which heat halves
constexpr float kUseHeat = 64, kMostHeat = 255;

std::uint8_t host_state(Parts parts, bool slices) {
  if (slices) return parts.empty() ? 0 : parts.has(Part::kLsb) ? 6 : 5;
  // From all of it (F) down to nothing (M).
  return static_cast<std::uint8_t>(4 - experts::place_of(experts::state_of(parts)));
}

std::uint8_t device_state(const engine::EngineDevice& device) {
  const engine::SlotChoice& slot = device.slot_form();
  if (!slot.slices.empty()) return slot.slices.has(Part::kLsb) ? 4 : 3;
  return slot.packed ? 2 : 1;
}

}  // namespace

ExpertWatch::ExpertWatch(std::size_t layers, std::size_t experts)
    : layers_(layers),
      experts_(experts),
      tokens_(metric_row("iteration_tokens_total").bounds),
      sequences_(metric_row("batch_sequences").bounds),
      counts_{std::vector<LayerCounts>(layers), std::vector<LayerCounts>(layers)},
      uses_(layers * experts),
      heat_(layers * experts),
      seen_(experts) {}

void ExpertWatch::on_step(const engine::Step& step) {
  tokens_.add(static_cast<double>(step.tokens.size()));
  sequences_.add(static_cast<double>(step.spans.size()));
}

void ExpertWatch::on_routing(const experts::ScoresView& scores, const experts::Routing& routing) {
  kind_ = scores.kind();
  const std::uint64_t demand = demand_of(scores, routing);
  demand_ += demand;
  counts_[kind_ == experts::StepKind::kDecode][scores.layer].demand += demand;
}

std::uint64_t ExpertWatch::demand_of(const experts::ScoresView& scores, const experts::Routing& routing) {
  std::uint64_t demand = 0;
  for (const experts::SequenceSpan& span : scores.spans) {
    ++span_;
    for (std::uint32_t t = span.first_token; t < span.first_token + span.tokens; ++t)
      for (const experts::Choice& choice : routing.token(t))
        if (std::exchange(seen_[choice.expert], span_) != span_) ++demand;
  }
  return demand;
}

void ExpertWatch::on_decisions(std::uint32_t sparse_layer, const experts::LayerDecision& decision) {
  LayerCounts& count = counts_[kind_ == experts::StepKind::kDecode][sparse_layer];
  count.accesses += decision.experts.size();
  count.misses += decision.outcome->misses.size();
  count.hits += decision.experts.size() - std::min(decision.experts.size(), decision.outcome->misses.size());
  for (const experts::ExpertId id : decision.experts) {
    const std::size_t at = id.layer * experts_ + id.index;
    ++uses_[at];
    heat_[at] = std::min(kMostHeat, heat_[at] + kUseHeat);
  }
}

float ExpertWatch::cooling(std::chrono::steady_clock::duration time) {
  return static_cast<float>(std::exp2(-std::chrono::duration<double>(time).count() / kHalfLife));
}

void ExpertWatch::fill(const engine::RunReport& run, ExpertBoard& board) {
  const auto now = std::chrono::steady_clock::now();
  const float left = cooling(now - std::exchange(cooled_, now));
  board.layers = layers_;
  board.experts = experts_;
  board.device = run.device != nullptr;
  board.uses = uses_;
  board.state.resize(uses_.size());
  board.heat.resize(uses_.size());
  const bool slices = run.checkpoint.slices().has_value();
  for (std::size_t at = 0; at < uses_.size(); ++at) {
    const experts::ExpertId id{static_cast<std::uint16_t>(at / experts_),
                               static_cast<std::uint16_t>(at % experts_)};
    std::uint8_t state = host_state(run.experts.parts(id), slices);
    if (run.device != nullptr && run.device->holds(id))
      state = static_cast<std::uint8_t>(state | device_state(*run.device) << 4);
    board.state[at] = state;
    heat_[at] *= left;
    board.heat[at] = static_cast<std::uint8_t>(heat_[at]);
  }
}

}  // namespace sluice::serve
