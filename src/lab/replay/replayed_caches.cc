#include "lab/replay/replayed_caches.h"

#include <fmt/format.h>

#include "base/error.h"
#include "base/setting.h"

namespace sluice::lab {
namespace {

void check_sizes(const trace::TraceSizes* sizes, const ReplaySettings& settings) {
  if (settings.unit != CapacityUnit::kBytes) return;
  if (sizes == nullptr)
    throw Error(ErrorKind::kUsage, "the trace does not say how large its experts are")
        .in(Setting::kCapacity)
        .expected("a number of experts")
        .found("a size")
        .fix("give a number without a unit, or " + Setting::kExpertBytes);
  for (std::uint32_t layer = 0; layer < sizes->layers(); ++layer)
    for (std::uint32_t e = 0; e < sizes->experts(); ++e)
      if (sizes->bytes({static_cast<std::uint16_t>(layer), static_cast<std::uint16_t>(e)})
              .of(settings.keep) == 0)
        throw Error(ErrorKind::kUsage, "the model of this trace does not store experts in these parts")
            .in(Setting::kKeep)
            .expected("parts that the trace has sizes of")
            .found(std::string(experts::parts_name(settings.keep)))
            .fix("keep them in full");
}

void check_pools(std::uint32_t layers, const trace::TraceSizes* sizes, const ReplaySettings& settings) {
  const experts::CachePolicy& policy = *settings.cache;
  if (policy.pooled != settings.pools.has_value())
    throw Error(ErrorKind::kUsage,
                policy.pooled ? "a cache with pools must be told their slots" : "this cache has no pools")
        .in(Setting::kPools)
        .expected(policy.pooled ? Setting::kPools + " F,C,S,E" : "the cache zip-pools")
        .found(settings.cache.name())
        .fix(policy.pooled ? "give the slots of a layer as F,C,S,E; `sluice plan` chooses them"
                           : "leave " + Setting::kPools + " out");
  if (!settings.pools) return;
  const experts::PoolSlots& slots = *settings.pools;
  if (settings.unit == CapacityUnit::kExperts) {
    const std::uint64_t in_all = (std::uint64_t{slots.f} + slots.c + slots.s + slots.e) *
                                 (settings.scope == Scope::kLayer ? 1 : layers);
    if (in_all > settings.capacity)
      throw Error(ErrorKind::kBudget, "the slots of zip-pools do not fit its cache")
          .in(Setting::kPools)
          .expected(fmt::format("at most {} experts", settings.capacity))
          .found(fmt::format("{} slots in all", in_all))
          .fix("give fewer slots, or a larger " + Setting::kCapacity);
    return;
  }
  if (slots.c + slots.s + slots.e > 0 && sizes->layers() > 0 && sizes->bytes({0, 0}).exp == 0)
    throw Error(ErrorKind::kUsage, "the experts of this trace are stored whole")
        .in(Setting::kPools)
        .expected("slots of F only")
        .found(experts::slots_text(slots))
        .fix("give " + Setting::kPools + " F,0,0,0, or a trace of a packed store");
}

}  // namespace

void check_caches(const ReplaySettings& settings, std::uint32_t layers, const trace::TraceSizes* sizes) {
  check_sizes(sizes, settings);
  check_pools(layers, sizes, settings);
}

experts::EqualSizes experts_counted() { return experts::EqualSizes({.full = 1, .sm = 1, .exp = 0}); }

experts::CacheConfig config_of(const ReplaySettings& settings) {
  experts::CacheConfig config;
  config.keep = settings.keep;
  config.seed = settings.seed;
  if (settings.pools) config.pools = {.slots = {*settings.pools}, .rules = settings.rules};
  return config;
}

experts::DecisionSetting decision_setting(const ReplaySettings& settings, const std::string& played) {
  return {.cache = std::string(settings.cache.name()),
          .scope = settings.scope == Scope::kLayer ? "layer" : "global",
          .capacity = settings.capacity,
          .keep = settings.keep,
          .seed = settings.seed,
          .pools = settings.pools,
          .rules = settings.rules,
          .routing = played};
}

}  // namespace sluice::lab
