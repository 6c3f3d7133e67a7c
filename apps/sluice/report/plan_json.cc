#include "report/plan_json.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "engine/forward/dense/dense_choice.h"
#include "engine/plan/engine_plan.h"
#include "engine/plan/memory_plan.h"
#include "engine/plan/pool_plan.h"
#include "engine/read_forecast.h"
#include "engine/run_report.h"
#include "experts/registry.h"
#include "experts/routing/slice_names.h"
#include "fetch/memory/expert_store.h"
#include "model/architecture.h"
#include "report/run_json.h"
#include "report/run_report.h"
#include "store/checkpoint.h"

namespace sluice::app {
namespace {

// Mean bytes that these parts of an expert take in memory.
Bytes mean_bytes(const engine::RunReport& run, experts::Parts parts) {
  const std::vector<model::ExpertPieces>& all = run.model.experts;
  Bytes sum = 0;
  for (const model::ExpertPieces& expert : all)
    sum += run.experts.sizes()
               .bytes({static_cast<std::uint16_t>(expert.layer), static_cast<std::uint16_t>(expert.index)})
               .of(parts);
  return sum / all.size();
}

}  // namespace

std::string_view dense_view_name(engine::DenseView view) {
  return view == engine::DenseView::kPacked ? "packed" : "words";
}

std::vector<Held> held_by_cache(const engine::RunReport& run) {
  const std::size_t all = run.model.experts.size();
  const auto of = [&](std::string_view name, experts::Parts parts) {
    const Bytes each = mean_bytes(run, parts);
    const bool keeps = run.policies.cache->keeps;
    const std::size_t room = keeps ? run.memory.experts / std::max<Bytes>(each, 1) : 0;
    return Held{name, std::min(all, room), each};
  };
  const Held both = of("both slices", experts::Part::kMsb | experts::Part::kLsb),
             msb = of("the MSB slice", experts::Part::kMsb);
  const bool low = run.policies.precision.mode == experts::PrecisionMode::kLow;
  if (run.policies.cache->sliced && !low) return {both, msb};
  if (run.checkpoint.slices()) return {low ? msb : both};
  return {of(keep_name(run.plan.keep), run.policies.kept)};
}

Json plan_json(const engine::RunReport& run, std::size_t positions) {
  const engine::MemoryPlan& memory = run.memory;
  const engine::PolicyPlan& policies = run.policies;
  Json json = run.pool_plan ? engine::to_json(*run.pool_plan) : Json::object();
  json["budget"] = memory.budget;
  json["tokens"] = positions;
  json["by_name"] = {{"process", memory.process},
                     {"dense", memory.dense},
                     {"kv", memory.kv},
                     {"tables", memory.tables},
                     {"activations", memory.activations},
                     {"staging", memory.staging},
                     {"experts", memory.experts}};
  if (memory.serve != 0) json["by_name"]["serve"] = memory.serve;
  json["dense"] = {{"view", dense_view_name(run.dense_choice.view)}, {"why", run.dense_choice.why}};
  json["minimum"] = memory.stated;
  json["policies"] = {
      {"preset", policies.preset_name()},
      {"router", policies.router->name},
      {"cache", policies.cache->name},
      {"cache_scope", engine::cache_scope_name(run.plan.cache_scope)},
      {"scheduler", policies.scheduler->name},
      {"prefetch", policies.prefetch->name},
      {"placement", policies.placement->name},
      {"placement_prefill",
       policies.prefill_placement != nullptr ? Json(policies.prefill_placement->name) : Json()},
      {"precision", experts::precision_name(policies.precision.mode)},
      {"constraint", experts::constraint_name(policies.limits.mode)}};
  if (run.profile) json["profile"] = engine::to_json(*run.profile);
  if (run.pool_plan) return json;
  for (const Held& held : held_by_cache(run))
    json["held"].push_back({{"parts", held.parts}, {"experts", held.experts}, {"bytes_each", held.each}});
  if (!run.checkpoint.slices()) json["predicted"] = forecast_json(run);
  return json;
}

}  // namespace sluice::app
