#include "engine/decision_recorder.h"

#include "experts/decision_log.h"

namespace sluice::engine {

namespace {

std::optional<experts::SliceSetting> slice_setting(const Engine& engine) {
  const EngineOptions& options = engine.options();
  if (!engine.checkpoint().slices()) return std::nullopt;
  return experts::SliceSetting{
      {options.precision, options.critical}, options.slices, engine.constraint()->config()};
}

}  // namespace

DecisionRecorder::DecisionRecorder(const std::string& path, const Engine& engine)
    : out_(OutputFile::create(path), kMemory / 2), unfinished_(path) {
  out_.write(experts::decision_heading(
      {.cache = engine.options().cache,
       .scope = engine.options().cache_scope,
       .capacity = engine.cache_capacity(),
       .keep = engine.kept_parts(),
       .seed = engine.options().seed,
       .pools = engine.pool_plan() ? std::optional(engine.pool_plan()->chosen.slots) : std::nullopt,
       .slices = slice_setting(engine)}));
}

void DecisionRecorder::on_decisions(std::uint32_t sparse_layer, const experts::EventOutcome& outcome) {
  line_.clear();
  experts::append_decision(line_, events_++, sparse_layer, outcome);
  out_.write(line_);
}

void DecisionRecorder::finish(const Engine& engine) {
  out_.write(experts::decision_ending(engine.decision_hash()));
  out_.close();
  unfinished_.keep();
}

}  // namespace sluice::engine
