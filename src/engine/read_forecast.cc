#include "engine/read_forecast.h"

#include <algorithm>
#include <numeric>
#include <vector>

#include "engine/engine_device.h"
#include "engine/plan/engine_plan.h"
#include "engine/plan/memory_plan.h"
#include "engine/plan/pool_plan.h"
#include "engine/plan/profile.h"
#include "engine/plan/ranked_reads.h"
#include "engine/run_report.h"
#include "experts/registry.h"
#include "experts/tier_choice.h"
#include "model/architecture.h"
#include "model/config.h"

namespace sluice::engine {
namespace {

// Experts of a layer that need no read, on average.
double kept_experts(const RunReport& run) {
  const auto experts = static_cast<double>(run.model.config.moe.experts);
  const Bytes cache = run.policies.cache->keeps ? run.memory.experts : 0;
  const double host =
      std::min(experts, experts * static_cast<double>(cache) /
                            static_cast<double>(std::max<Bytes>(1, run.expert_memory_bytes())) /
                            static_cast<double>(run.model.experts.size()));
  if (run.device == nullptr || run.device->rests()) return host;
  const auto device = static_cast<double>(run.device->memory().slots);
  // Exclusive tiers hold different experts; in inclusive ones the host has what the device has.
  return std::min(experts,
                  run.tiers.tiers == experts::Tiers::kExclusive ? host + device : std::max(host, device));
}

// Fills f and missing for caches that keep whole experts; says what f is.
std::string_view rank_layer(const RunReport& run, std::vector<double>& f, std::vector<double>& missing) {
  const model::ModelConfig& config = run.model.config;
  const std::size_t experts = config.moe.experts;
  std::vector<double> ranks = run.plan.ranks;
  if (ranks.empty() && run.profile) ranks = run.profile->ranks;
  const bool recorded = ranks.size() == experts;
  if (!recorded)
    ranks = assumed_ranks(static_cast<std::uint32_t>(experts), static_cast<std::uint32_t>(config.moe.top_k));
  const auto bytes = static_cast<double>(run.expert_disk_bytes());
  f = ranks_of_batch(ranks, std::max<std::size_t>(1, run.plan.sequences));
  missing.assign(experts, 0);
  double slots = kept_experts(run);
  for (double& one : missing) {
    one = (1 - std::clamp(slots, 0.0, 1.0)) * bytes;
    slots -= 1;
  }
  return recorded ? "recorded" : "assumed";
}

}  // namespace

std::string played_in_profile(const RunReport& run) {
  const bool used = run.plan.ranks.empty() && run.profile && !run.profile->ranks.empty();
  return used ? run.profile->played : "";
}

ReadForecast forecast_reads(const RunReport& run) {
  const double sequences = static_cast<double>(std::max<std::size_t>(1, run.plan.sequences));
  ReadForecast forecast;
  if (run.policies.router->lossy) forecast.router = run.policies.router->name;
  forecast.played = played_in_profile(run);
  if (run.pool_plan) {
    const PoolPlan& plan = *run.pool_plan;
    forecast.needed = plan.chosen.disk_bytes / sequences;
    forecast.tok_s = plan.chosen.tok_s;
    if (plan.chosen.wasted_bytes) forecast.in_vain = *plan.chosen.wasted_bytes / sequences;
    forecast.routing = plan.ranks_assumed ? "assumed" : "recorded";
    return forecast;
  }
  std::vector<double> f, missing;
  forecast.routing = rank_layer(run, f, missing);
  const double layers = static_cast<double>(run.model.config.sparse_layers());
  forecast.needed = layers * needed_bytes({f, missing}) / sequences;
  if (run.policies.preset->whole_layers) {
    const double all = layers * std::accumulate(missing.begin(), missing.end(), 0.0);
    forecast.in_vain = all / sequences - forecast.needed;
    return forecast;
  }
  if (!run.policies.prefetch->prefetches) forecast.in_vain = 0;
  // The first sparse layer is not read ahead of.
  if (run.policies.prefetch->guesses_known)
    forecast.in_vain = std::max(0.0, layers - 1) * named_by_stream({f, missing}).wrong / sequences;
  return forecast;
}

}  // namespace sluice::engine
