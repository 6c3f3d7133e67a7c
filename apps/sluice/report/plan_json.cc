#include "report/plan_json.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "engine/engine.h"
#include "engine/forward/dense/dense_choice.h"
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
Bytes mean_bytes(const engine::Engine& engine, experts::Parts parts) {
  const std::vector<model::ExpertPieces>& all = engine.model().experts;
  Bytes sum = 0;
  for (const model::ExpertPieces& expert : all)
    sum += engine.report()
               .experts.sizes()
               .bytes({static_cast<std::uint16_t>(expert.layer), static_cast<std::uint16_t>(expert.index)})
               .of(parts);
  return sum / all.size();
}

}  // namespace

std::string_view dense_view_name(engine::DenseView view) {
  return view == engine::DenseView::kPacked ? "packed" : "words";
}

std::vector<Held> held_by_cache(const engine::Engine& engine) {
  const std::size_t all = engine.model().experts.size();
  const auto of = [&](std::string_view name, experts::Parts parts) {
    const Bytes each = mean_bytes(engine, parts);
    const bool keeps = engine.policies().cache->keeps;
    const std::size_t room = keeps ? engine.report().memory.experts / std::max<Bytes>(each, 1) : 0;
    return Held{name, std::min(all, room), each};
  };
  const Held both = of("both slices", experts::Part::kMsb | experts::Part::kLsb),
             msb = of("the MSB slice", experts::Part::kMsb);
  const bool low = engine.policies().precision.mode == experts::PrecisionMode::kLow;
  if (engine.policies().cache->sliced && !low) return {both, msb};
  if (engine.checkpoint().slices()) return {low ? msb : both};
  return {of(keep_name(engine.plan().keep), engine.policies().kept)};
}

Json plan_json(const engine::Engine& engine, std::size_t positions) {
  const engine::MemoryPlan& memory = engine.report().memory;
  const engine::PolicyPlan& policies = engine.policies();
  Json json = engine.report().pool_plan ? engine::to_json(*engine.report().pool_plan) : Json::object();
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
  json["dense"] = {{"view", dense_view_name(engine.report().dense_choice.view)},
                   {"why", engine.report().dense_choice.why}};
  json["minimum"] = memory.stated;
  json["policies"] = {
      {"preset", policies.preset_name()},
      {"router", policies.router->name},
      {"cache", policies.cache->name},
      {"cache_scope", engine::cache_scope_name(engine.plan().cache_scope)},
      {"scheduler", policies.scheduler->name},
      {"prefetch", policies.prefetch->name},
      {"placement", policies.placement->name},
      {"placement_prefill",
       policies.prefill_placement != nullptr ? Json(policies.prefill_placement->name) : Json()},
      {"precision", experts::precision_name(policies.precision.mode)},
      {"constraint", experts::constraint_name(policies.limits.mode)}};
  if (engine.report().profile) json["profile"] = engine::to_json(*engine.report().profile);
  if (engine.report().pool_plan) return json;
  for (const Held& held : held_by_cache(engine))
    json["held"].push_back({{"parts", held.parts}, {"experts", held.experts}, {"bytes_each", held.each}});
  if (!engine.checkpoint().slices()) json["predicted"] = forecast_json(engine.report());
  return json;
}

}  // namespace sluice::app
