#include "experts/registry.h"

#include <string>

#include "base/error.h"
#include "base/setting.h"
#include "experts/cache/cache_policies.h"
#include "experts/registry_rows.h"
#include "experts/table_lookup.h"

namespace sluice::experts {

std::span<const CachePolicy> cache_policies() { return rows::kCaches; }
std::span<const RouterPolicy> router_policies() { return rows::kRouters; }
std::span<const PrefetchPolicy> prefetch_policies() { return rows::kPrefetches; }
std::span<const SchedulerPolicy> scheduler_policies() { return rows::kSchedulers; }
std::span<const PlacementPolicy> placement_policies() { return rows::kPlacements; }

const CachePolicy& find_cache(std::string_view name) {
  return find_row(cache_policies(), Setting::kCache, name);
}
const RouterPolicy& find_router(std::string_view name) {
  return find_row(router_policies(), Setting::kRouter, name);
}
const PrefetchPolicy& find_prefetch(std::string_view name) {
  return find_row(prefetch_policies(), Setting::kPrefetch, name);
}
const SchedulerPolicy& find_scheduler(std::string_view name) {
  return find_row(scheduler_policies(), Setting::kScheduler, name);
}
const PlacementPolicy& find_placement(std::string_view name, Setting asked_by) {
  return find_row(placement_policies(), asked_by, name);
}

void CacheConfig::validate() const {
  if (keep.empty() || !is_legal(keep)) {
    throw Error(ErrorKind::kUsage, "a cache cannot keep this set of parts")
        .in(Setting::kKeep)
        .expected("full, sm, exp, sm + exp, msb or msb + lsb")
        .found("bits " + std::to_string(keep.bits()));
  }
  pools.validate();
  slices.validate();
  workload.validate();
}

void WorkloadConfig::validate() const {
  const auto refuse = [](const char* expected, const std::string& found) {
    throw Error(ErrorKind::kUsage, "a cache cannot follow the work of experts by these rules")
        .in(Setting::kCache)
        .expected(expected)
        .found(found);
  };
  if (window.steps == 0 || score_iterations == 0) refuse("a window of at least one step", "0");
  if (!(ema.gamma >= 0 && ema.gamma < 1))
    refuse("a weight of the past from 0 to below 1", std::to_string(ema.gamma));
  if (!(ema.ratio >= 1)) refuse("a ratio of at least 1", std::to_string(ema.ratio));
}

std::unique_ptr<Cache> make_cache(const CachePolicy& policy, const CacheConfig& config) {
  config.validate();
  if (policy.oracle && config.future == nullptr) {
    throw Error(ErrorKind::kUsage, std::string(policy.name) + " must know all requests beforehand")
        .in(Setting::kCache)
        .expected("a cache that does not know the future")
        .found(std::string(policy.name))
        .fix("use it in a replay: sluice lab evict");
  }
  return policy.make(config);
}

std::unique_ptr<Cache> make_cache(std::string_view name, const CacheConfig& config) {
  return make_cache(find_cache(name), config);
}

}  // namespace sluice::experts
