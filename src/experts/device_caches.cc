#include "experts/device_caches.h"

#include <fmt/format.h>

#include <string>

#include "base/error.h"
#include "base/setting.h"
#include "experts/core/equal_sizes.h"

namespace sluice::experts {

bool takes_experts(const PlacementPolicy& placement, const PlacementPolicy* in_prompts, Tiers tiers) {
  return placement.needs_device || (in_prompts != nullptr && in_prompts->needs_device) ||
         tiers == Tiers::kExclusive;
}

WorkloadConfig workload_config(const WorkloadSetting& setting, Admit usual) {
  WorkloadConfig config;
  if (setting.steps) config.window.steps = config.score_iterations = *setting.steps;
  if (setting.swaps) config.window.swaps = config.ema.swaps = *setting.swaps;
  config.admit = setting.admit.value_or(usual);
  return config;
}

std::vector<std::unique_ptr<Residency>> make_device_caches(const DeviceCaches& setting) {
  static const EqualSizes kOneSlotEach{{.full = 1}};
  const std::uint32_t caches = setting.cache->whole_layers ? 1 : setting.layers;
  const std::uint32_t layers = setting.layers / caches;
  const CachedLayers all{0, setting.layers, setting.experts, setting.left_out};
  const auto slots_of = [&](std::uint32_t first) {
    Bytes slots = 0;
    for (std::uint32_t layer = first; layer < first + layers; ++layer)
      if (!all.leaves_out(layer)) slots += setting.slots;
    return slots;
  };
  std::vector<std::unique_ptr<Residency>> made;
  for (std::uint32_t i = 0; i < caches; ++i) {
    CacheConfig config{.seed = setting.seed};
    config.layers = {i, layers, setting.experts, setting.left_out};
    config.workload = setting.workload;
    config.workload.top_k = setting.top_k;
    const Named<CachePolicy> cache =
        layers == 1 && all.leaves_out(i) ? Named<CachePolicy>("none") : setting.cache;
    made.push_back(
        std::make_unique<Residency>(make_cache(*cache, config), kOneSlotEach, slots_of(i), Tier::kDevice));
  }
  return made;
}

std::string_view why_for_a_device(const CachePolicy& cache) {
  if (cache.by_popularity) return "this cache is for a device, and must know how often each expert is used";
  if (cache.whole_layers) return "this cache is for a device, which begins with whole layers";
  if (cache.starts && !cache.keeps)
    return "this cache is for a device, which begins with experts that are drawn";
  return "";
}

void check_host_cache(const CachePolicy& cache) {
  const std::string_view why = why_for_a_device(cache);
  if (why.empty()) return;
  const std::string name(cache.name);
  throw Error(ErrorKind::kUsage, why)
      .in(Setting::kCache)
      .expected("a cache that takes experts in as they are used")
      .found(name)
      .fix("replay both tiers: " + Setting::kMachine + " with " + Setting::kDeviceSlots + ", " +
           Setting::kDeviceCache + " " + name +
           (cache.by_popularity ? " and " + Setting::kRanksOf + " FILE, recorded routing of another text"
                                : std::string()));
}

void check_layer_has(std::uint32_t wanted, std::uint32_t experts, Setting setting) {
  if (wanted <= experts) return;
  throw Error(ErrorKind::kUsage, "a layer does not have so many experts")
      .in(setting)
      .expected(fmt::format("at most {}", experts))
      .found(std::to_string(wanted))
      .fix(fmt::format("give {} {} for all of them", mark(setting), experts));
}

}  // namespace sluice::experts
