#include "engine/trace_recorder.h"

#include <fmt/format.h>

#include "base/error.h"
#include "engine/engine.h"
#include "engine/engine_device.h"
#include "engine/forward/predictor.h"
#include "engine/plan/pool_plan.h"
#include "engine/run_report.h"
#include "experts/cache/pool_rules.h"
#include "experts/core/pools.h"
#include "experts/decision_log.h"
#include "fetch/memory/expert_store.h"
#include "model/architecture.h"

namespace sluice::engine {

trace::TraceHeader trace_header(const Engine& engine, const TraceExtras& extras) {
  const model::ModelConfig& config = engine.report().model.config;
  trace::TraceHeader header;
  header.format = "trace";
  header.architecture = config.model_type;
  header.layers = config.sparse_layers();
  header.experts = config.moe.experts;
  header.top_k = config.moe.top_k;
  header.identity = model_identity(engine);
  header.logits = true;
  if (extras.ahead) {
    header.ahead = {std::string(kStream), std::string(kGateInput)};
    if (engine.report().policies.residual) header.ahead.emplace_back(kGateInputAndResidual);
    if (engine.report().policies.prefetch->predictor == experts::PredictorKind::kPartial)
      header.ahead.emplace_back(kPartialState);
    header.ahead.emplace_back(kStreamAndLayer);
  }
  if (extras.gate_inputs) header.gate_inputs = static_cast<std::uint32_t>(config.hidden);
  header.sizes.emplace(header.layers, header.experts);
  for (const model::ExpertPieces& pieces : engine.report().model.experts) {
    const experts::ExpertId id{static_cast<std::uint16_t>(pieces.layer),
                               static_cast<std::uint16_t>(pieces.index)};
    header.sizes->set(id, engine.report().experts.sizes().bytes(id), engine.report().experts.disk_bytes(id),
                      engine.report().experts.layout(id).rest.disk_bytes());
  }
  return header;
}

Json run_record(const Engine& engine) {
  Json record = {{"cache", engine.report().policies.cache->name},
                 {"scope", cache_scope_name(engine.report().plan.cache_scope)},
                 {"capacity", engine.report().cache_capacity()},
                 {"keep", keep_name(engine.report().plan.keep)},
                 {"seed", engine.report().plan.seed}};
  if (const std::string played = engine.report().policies.played(); !played.empty())
    record["routing"] = played;
  if (engine.report().pool_plan) {
    const experts::PoolSlots& slots = engine.report().pool_plan->chosen.slots;
    const experts::PoolRules rules;  // the engine uses only these
    record["pools"] = {{"slots", {slots.f, slots.c, slots.s, slots.e}},
                       {"delta", rules.delta},
                       {"demote", experts::demotion_name(rules.demotion)},
                       {"half_life", rules.half_life}};
  }
  if (const RunReport run = engine.report(); run.device != nullptr)
    record["device"] = {{"cache", engine.report().policies.device_cache->name},
                        {"placement", engine.report().policies.placement->name},
                        {"slots", run.device->memory().slots},
                        {"profile", fmt::format("{:016x}", experts::hash_of(run.decider.policies().costs))}};
  return record;
}

void TraceRecorder::on_step(const Step& step) {
  if (writer_.in_step()) {  // the last step failed
    writer_.abandon_step();
    std::erase_if(sequences_, [&](const auto& entry) { return entry.second >= first_of_step_; });
    next_sequence_ = first_of_step_;
  }
  first_of_step_ = next_sequence_;
  marks_.clear();
  for (const SequenceSpan& span : step.spans) {
    if (span.sequence->length() == 0) sequences_.erase(span.sequence->id());
    const auto [at, is_new] = sequences_.try_emplace(span.sequence->id(), next_sequence_);
    if (is_new) ++next_sequence_;
    marks_.push_back({at->second, static_cast<std::uint32_t>(span.tokens),
                      static_cast<std::uint32_t>(span.sequence->length())});
  }
  writer_.begin_step(
      step.kind() == StepKind::kPrompt ? trace::TracePhase::kPrefill : trace::TracePhase::kDecode, marks_,
      step.tokens);
}

void TraceRecorder::on_resume(const Step&) {
  throw Error(ErrorKind::kUnsupported, "a step that was suspended for another step cannot be recorded")
      .in("the trace")
      .fix("record a run that does not suspend its steps");
}

void TraceRecorder::on_inputs(std::uint32_t, std::span<const float> inputs) {
  if (writer_.has_gate_inputs()) writer_.gate_inputs(inputs);
}

void TraceRecorder::on_ahead(std::string_view predictor, const experts::ScoresView& next) {
  writer_.ahead(predictor, next.logits);
}

void TraceRecorder::on_routing(const experts::ScoresView& scores, const experts::Routing& routing) {
  writer_.layer(scores.logits, routing);
}

}  // namespace sluice::engine
