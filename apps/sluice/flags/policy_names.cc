#include "flags/policy_names.h"

#include <string_view>

#include "base/error.h"
#include "flags/engine_flags.h"

namespace sluice::app {
namespace {

void check_prefetch(const std::string& name) {
  const experts::PrefetchPolicy& prefetch = experts::find_prefetch(name);
  if (runs(prefetch)) return;
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

void check_cache(const std::string& name, Setting setting, CacheUser user) {
  const bool on_device = setting == Setting::kDeviceCache;
  const auto why_not = [&](const experts::CachePolicy& cache) -> std::string_view {
    if (cache.oracle) return "this cache must know all requests beforehand";
    if (!on_device && user == CacheUser::kModel && !experts::why_for_a_device(cache).empty())
      return experts::why_for_a_device(cache);
    if (on_device && (cache.pooled || cache.sliced))
      return "a device's cache holds whole experts, neither pools nor slices";
    return "";
  };
  const std::string names =
      names_of(experts::cache_policies(), [&](const auto& cache) { return why_not(cache).empty(); });
  for (const experts::CachePolicy& policy : experts::cache_policies()) {
    if (policy.name != name) continue;
    if (why_not(policy).empty()) return;
    throw Error(ErrorKind::kUsage, why_not(policy))
        .in(setting)
        .expected("one of " + names)
        .found(name)
        .fix(on_device       ? "name another"
             : policy.oracle ? "ask `sluice lab evict` what it would do"
                             : "name another, or replay a trace: sluice simulate");
  }
  throw Error(ErrorKind::kUsage, "unknown name")
      .in(setting)
      .expected("one of " + names)
      .found("\"" + name + "\"");
}

void check_policies(const EngineFlags& flags) {
  if (!flags.preset.empty()) experts::host_preset(flags.preset);
  if (!flags.router.empty()) experts::find_router(flags.router);
  if (!flags.cache.empty()) check_cache(flags.cache, Setting::kCache, CacheUser::kModel);
  if (!flags.scheduler.empty()) experts::find_scheduler(flags.scheduler);
  if (!flags.prefetch.empty()) check_prefetch(flags.prefetch);
  if (!flags.placement.empty()) experts::find_placement(flags.placement);
  if (!flags.placement_prefill.empty())
    experts::find_placement(flags.placement_prefill, Setting::kPlacementPrefill);
  if (!flags.device_cache.empty()) check_cache(flags.device_cache, Setting::kDeviceCache, CacheUser::kModel);
}

}  // namespace sluice::app
