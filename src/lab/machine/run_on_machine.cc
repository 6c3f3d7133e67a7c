#include "lab/machine/run_on_machine.h"

#include <algorithm>

#include "base/error.h"
#include "engine/engine.h"
#include "engine/forward/dense/dense_choice.h"
#include "engine/forward/dense/dense_weights.h"
#include "engine/run_report.h"
#include "engine/watch/statistics.h"
#include "experts/layer_decider.h"
#include "fetch/memory/expert_store.h"
#include "model/architecture.h"
#include "store/checkpoint.h"

namespace sluice::lab {
namespace {

using experts::Part;

RestWidths widths_of(const engine::Engine& engine, const SlicedModel& model) {
  const Bytes dense = engine::DenseWeights::resident_bytes(engine.report().checkpoint, engine.report().model,
                                                           engine.report().dense_choice.view);
  const model::ModelConfig& config = engine.report().model.config;
  return {.weight = static_cast<double>(dense) / model.rest_weights(),
          .kv = static_cast<double>(engine::kv_bytes_per_token(config, engine.report().plan.cache_dtype)) /
                static_cast<double>(engine::kv_elements_per_token(config))};
}

}  // namespace

bool RunOnMachine::models(const model::ModelConfig& config) {
  return config.sparse_layers() > 0 && !config.has_encoder();
}

RunOnMachine::RunOnMachine(const engine::Engine& engine, const Machine& machine)
    : engine_(engine),
      machine_(machine),
      model_(engine.report().checkpoint.path(), engine.report().model.config),
      widths_(widths_of(engine, model_)),
      sliced_(engine.report().checkpoint.slices().has_value()),
      packed_(!sliced_ && !engine.report().policies.kept.has(Part::kFull)),
      before_(engine.report().statistics),
      clock_(machine) {}

void RunOnMachine::turn_to(const engine::Step& step) {
  now_ = step.kind() == engine::StepKind::kPrompt ? &prefill_ : &decode_;
}

void RunOnMachine::on_step(const engine::Step& step) {
  turn_to(step);
  stretches_.clear();
  for (const engine::SequenceSpan& slice : step.spans)
    stretches_.push_back({static_cast<double>(slice.tokens), static_cast<double>(slice.sequence->length())});
  const SlicedModel::Work rest = model_.rest(machine_, stretches_, widths_);
  now_->traffic += rest.traffic;
  now_->rest_s += rest.seconds;
  now_->steps += 1;
  now_->tokens += step.tokens.size();
}

ExpertWork RunOnMachine::work_of(const experts::Admission& admission) const {
  const experts::ExpertId id = admission.id;
  const experts::ExpertBytes sizes = engine_.report().experts.sizes().bytes(id);
  const Bytes rest = engine_.report().experts.layout(id).rest.disk_bytes(),
              base = engine_.report().experts.disk_bytes(id) - rest;
  ExpertWork work = {.ops = model_.expert_ops(tokens_[id.index])};
  if (sliced_) {
    const experts::Parts read = admission.to_read();
    work.msb_read = read.has(Part::kMsb) ? base : 0;
    work.lsb_read = read.has(Part::kLsb) ? rest : 0;
    work.view = sizes.of(admission.view);
    return work;
  }
  // One read for everything that is missing: the second region has no order of its own.
  const experts::Parts held = admission.before;
  if (!held.has(Part::kFull))
    work.msb_read = (held.has(Part::kSm) ? 0 : base) + (held.has(Part::kExp) ? 0 : rest);
  work.view = packed_ ? sizes.sm + sizes.exp : sizes.full;
  return work;
}

void RunOnMachine::on_decisions(std::uint32_t /*sparse_layer*/, const experts::LayerDecision& decision) {
  const std::size_t count = engine_.report().model.config.moe.experts;
  tokens_.assign(count, 0);
  for (std::size_t i = 0; i < decision.experts.size(); ++i)
    tokens_[decision.experts[i].index] = decision.tokens[i];
  admissions_.assign(count, nullptr);
  ranked_.assign(decision.slices.ranked.begin(), decision.slices.ranked.end());
  for (const auto* used : {&decision.outcome->hits, &decision.outcome->misses})
    for (const experts::Admission& one : *used) {
      admissions_[one.id.index] = &one;
      if (!sliced_) ranked_.push_back(one.id);
    }
  if (!sliced_) std::ranges::sort(ranked_);
  work_.clear();
  for (const experts::ExpertId id : ranked_) {
    SLUICE_CHECK(admissions_[id.index] != nullptr, "an expert that was asked for has no decision");
    work_.push_back(work_of(*admissions_[id.index]));
    now_->traffic.dram_read += static_cast<double>(work_.back().view);
    now_->traffic.ops += work_.back().ops;
  }
  const ExpertPhase phase = clock_.time(work_);
  now_->compute_s += phase.xpu_s;
  now_->wait_s += phase.wait_s();
}

RunPhase RunOnMachine::finished(RunPhase phase, const engine::ExpertStatistics& now,
                                const engine::ExpertStatistics& before) const {
  phase.traffic.flash =
      static_cast<double>(now.bytes_read + now.prefetch_bytes - before.bytes_read - before.prefetch_bytes);
  phase.energy = machine_.energy(phase.traffic);
  return phase;
}

RunPhase RunOnMachine::prefill() const {
  return finished(prefill_, engine_.report().statistics.prefill, before_.prefill);
}
RunPhase RunOnMachine::decode() const {
  return finished(decode_, engine_.report().statistics.decode, before_.decode);
}

}  // namespace sluice::lab
