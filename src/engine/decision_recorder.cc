#include "engine/decision_recorder.h"

#include "engine/engine.h"
#include "engine/plan/pool_plan.h"
#include "engine/run_report.h"
#include "experts/decision_log.h"
#include "experts/layer_decider.h"
#include "store/checkpoint.h"

namespace sluice::engine {

namespace {

std::optional<experts::SliceSetting> slice_setting(const Engine& engine) {
  if (!engine.report().checkpoint.slices()) return std::nullopt;
  return experts::SliceSetting{engine.report().policies.precision, engine.report().policies.slices,
                               engine.report().constraint()->config()};
}

}  // namespace

DecisionRecorder::DecisionRecorder(const std::string& path, const Engine& engine)
    : out_(OutputFile::create(path), kMemory / 2), unfinished_(path) {
  const experts::LayerDecider& decider = engine.report().decider;
  out_.write(experts::decision_heading(
      {.cache = std::string(engine.report().policies.cache->name),
       .scope = std::string(cache_scope_name(engine.report().plan.cache_scope)),
       .capacity = engine.report().cache_capacity(),
       .keep = engine.report().policies.kept,
       .seed = engine.report().plan.seed,
       .pools =
           engine.report().pool_plan ? std::optional(engine.report().pool_plan->chosen.slots) : std::nullopt,
       .slices = slice_setting(engine),
       .routing = engine.report().policies.played(),
       .device = experts::device_setting(decider.policies())}));
  if (decider.device() == nullptr) return;
  experts::append_start(line_, decider.device()->start());
  if (!line_.empty()) out_.write(line_);
}

void DecisionRecorder::on_decisions(std::uint32_t sparse_layer, const experts::LayerDecision& decision) {
  line_.clear();
  experts::append_decision(line_, events_++, sparse_layer, decision);
  out_.write(line_);
}

void DecisionRecorder::finish(const Engine& engine) {
  out_.write(experts::decision_ending(engine.report().decision_hash()));
  out_.close();
  unfinished_.keep();
}

}  // namespace sluice::engine
