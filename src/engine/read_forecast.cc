#include "engine/read_forecast.h"

#include <algorithm>
#include <vector>

#include "engine/engine.h"
#include "engine/plan/ranked_reads.h"
#include "experts/registry.h"

namespace sluice::engine {
namespace {

// Fills f and missing for caches that keep whole experts; says what f is.
std::string_view rank_layer(const Engine& engine, std::vector<double>& f, std::vector<double>& missing) {
  const model::ModelConfig& config = engine.model().config;
  const std::size_t experts = config.moe.experts;
  std::vector<double> ranks = engine.options().ranks;
  if (ranks.empty() && engine.profile()) ranks = engine.profile()->ranks;
  const bool recorded = ranks.size() == experts;
  if (!recorded)
    ranks = assumed_ranks(static_cast<std::uint32_t>(experts), static_cast<std::uint32_t>(config.moe.top_k));
  const Bytes cache = experts::find_cache(engine.options().cache).keeps ? engine.plan().experts : 0;
  const double kept =
      std::min(1.0, static_cast<double>(cache) /
                        static_cast<double>(std::max<Bytes>(1, engine.expert_memory_bytes())) /
                        static_cast<double>(engine.model().experts.size()));
  const auto bytes = static_cast<double>(engine.expert_disk_bytes());
  f = ranks_of_batch(ranks, std::max<std::size_t>(1, engine.options().sequences));
  missing.assign(experts, 0);
  double slots = kept * static_cast<double>(experts);
  for (double& one : missing) {
    one = (1 - std::clamp(slots, 0.0, 1.0)) * bytes;
    slots -= 1;
  }
  return recorded ? "recorded" : "assumed";
}

}  // namespace

ReadForecast forecast_reads(const Engine& engine) {
  const double sequences = static_cast<double>(std::max<std::size_t>(1, engine.options().sequences));
  if (engine.pool_plan()) {
    const PoolPlan& plan = *engine.pool_plan();
    ReadForecast forecast{plan.chosen.disk_bytes / sequences, {}, "assumed", plan.chosen.tok_s};
    if (plan.chosen.wasted_bytes) forecast.in_vain = *plan.chosen.wasted_bytes / sequences;
    if (!plan.ranks_assumed) forecast.routing = "recorded";
    return forecast;
  }
  std::vector<double> f, missing;
  ReadForecast forecast;
  forecast.routing = rank_layer(engine, f, missing);
  const double layers = static_cast<double>(engine.model().config.sparse_layers());
  forecast.needed = layers * needed_bytes({f, missing}) / sequences;
  if (engine.options().prefetch == "none") forecast.in_vain = 0;
  // The first sparse layer is not read ahead of.
  if (engine.options().prefetch == "lookahead")
    forecast.in_vain = std::max(0.0, layers - 1) * named_by_lookahead({f, missing}).wrong / sequences;
  return forecast;
}

}  // namespace sluice::engine
