#include "flags/policy_names.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/unknown_name.h"
#include "experts/table_lookup.h"
#include "flags/engine_flags.h"

namespace sluice::app {
namespace {

const experts::PrefetchPolicy& find_prefetch_of_model(const std::string& name) {
  const auto known = names_in(experts::prefetch_policies(), [](const auto& policy) { return runs(policy); });
  const auto has_name = [&](const auto& policy) { return experts::is_named(policy, name); };
  const auto found = std::ranges::find_if(experts::prefetch_policies(), has_name);
  if (found == experts::prefetch_policies().end()) throw unknown_name(Setting::kPrefetch, name, known);
  if (runs(*found)) return *found;
  throw Error(ErrorKind::kUsage,
              "this prefetch must know which experts follow which, which replays alone count")
      .in(Setting::kPrefetch)
      .expected("one of " + names_of(experts::prefetch_policies()))
      .found(name)
      .fix("name another, or replay a trace: sluice simulate " + Setting::kPrefetch + " " + name + " " +
           Setting::kRanksOf + " FILE");
}

}  // namespace

std::string device_cache_names() {
  return names_of(experts::cache_policies(), [](const experts::CachePolicy& cache) {
    return !cache.oracle && !cache.pooled && !cache.sliced;
  });
}

const experts::CachePolicy& find_cache_for(CacheUser user, const std::string& name, Setting setting) {
  const bool on_device = setting == Setting::kDeviceCache;
  const auto why_not = [&](const experts::CachePolicy& cache) -> std::string_view {
    if (cache.oracle) return "this cache must know all requests beforehand";
    if (!on_device && user == CacheUser::kModel && !experts::why_for_a_device(cache).empty())
      return experts::why_for_a_device(cache);
    if (on_device && (cache.pooled || cache.sliced))
      return "a device's cache holds whole experts, neither pools nor slices";
    return "";
  };
  const std::vector<std::string> names =
      names_in(experts::cache_policies(), [&](const auto& cache) { return why_not(cache).empty(); });
  for (const experts::CachePolicy& policy : experts::cache_policies()) {
    if (policy.name != name) continue;
    if (why_not(policy).empty()) return policy;
    throw Error(ErrorKind::kUsage, why_not(policy))
        .in(setting)
        .expected(fmt::format("one of {}", fmt::join(names, ", ")))
        .found(name)
        .fix(on_device       ? "name another"
             : policy.oracle ? "ask `sluice lab evict` what it would do"
                             : "name another, or replay a trace: sluice simulate");
  }
  throw unknown_name(setting, name, names);
}

const experts::RouterPolicy& find_router_for(bool plays, const std::string& name) {
  const auto acts = [&](const auto& policy) { return plays || !policy.scripted; };
  const auto has_name = [&](const auto& policy) { return experts::is_named(policy, name); };
  const auto found = std::ranges::find_if(experts::router_policies(), has_name);
  if (found == experts::router_policies().end())
    throw unknown_name(Setting::kRouter, name, names_in(experts::router_policies(), acts));
  if (acts(*found)) return *found;
  throw Error(ErrorKind::kUsage, "this router plays a routing trace, for benchmarks alone, and none is given")
      .in(Setting::kRouter)
      .expected(listed(names_in(experts::router_policies(), acts), "or"))
      .found(name)
      .fix("name one of these; sluice run, trace and compare play a trace: " + Setting::kRouter + " " + name +
           " " + Setting::kRouting + " FILE");
}

void name_policies(const EngineFlags& flags, engine::EngineOptions& options) {
  options.preset = flags.preset;
  if (!flags.router.empty()) options.router = find_router_for(!flags.routing.empty(), flags.router);
  if (!flags.cache.empty()) options.cache = find_cache_for(CacheUser::kModel, flags.cache, Setting::kCache);
  options.scheduler = flags.scheduler;
  if (!flags.prefetch.empty()) options.prefetch = find_prefetch_of_model(flags.prefetch);
  options.placement = flags.placement;
  if (!flags.placement_prefill.empty())
    options.placement_prefill = experts::find_placement(flags.placement_prefill, Setting::kPlacementPrefill);
  if (!flags.device_cache.empty())
    options.device_cache = find_cache_for(CacheUser::kModel, flags.device_cache, Setting::kDeviceCache);
}

}  // namespace sluice::app
