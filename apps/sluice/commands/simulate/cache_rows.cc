#include "commands/simulate/cache_rows.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "base/setting.h"
#include "experts/device_caches.h"
#include "flags/pool_slots.h"
#include "flags/room.h"
#include "flags/split_list.h"

namespace sluice::app {
namespace {

// Where no capacity is given, a cache with pools has room for its slots.
void fill_slots(const SimulateOptions& options, lab::ReplaySettings& settings) {
  if (!settings.cache->pooled || options.pools.empty()) return;
  settings.pools = parse_pool_slots(options.pools);
  settings.rules = options.rules;
}

}  // namespace

bool is_for_a_device(const experts::CachePolicy& policy) {
  return !experts::why_for_a_device(policy).empty();
}

std::vector<std::string> cache_names(const std::string& list, bool routed) {
  std::vector<std::string> names;
  if (list == "all") {
    for (const experts::CachePolicy& policy : experts::cache_policies())
      if (!policy.pooled && !policy.sliced && policy.scores == experts::CacheScores::kNone &&
          !is_for_a_device(policy) && !(routed && policy.oracle))
        names.emplace_back(policy.name);
    return names;
  }
  names = split_list(list, Setting::kCache);
  for (const std::string& name : names) experts::check_host_cache(experts::find_cache(name));
  return names;
}

void set_capacity(const std::string& text, lab::ReplaySettings& settings) {
  const Room room = parse_room(text);
  settings.capacity = room.amount;
  settings.unit = room.bytes ? lab::CapacityUnit::kBytes : lab::CapacityUnit::kExperts;
}

std::vector<CacheRow> cache_rows(const SimulateOptions& options, const lab::ReplayRouter& router,
                                 const std::vector<std::string>& caches) {
  const bool pooled =
      std::ranges::all_of(caches, [](const auto& name) { return experts::find_cache(name).pooled; });
  if (!options.pools.empty() &&
      std::ranges::none_of(caches, [](const auto& name) { return experts::find_cache(name).pooled; }))
    throw Error(ErrorKind::kUsage, "none of these caches has pools")
        .in(Setting::kPools)
        .expected(Setting::kCache + " zip-pools")
        .found(options.caches)
        .fix("name that cache, or leave " + Setting::kPools + " out");
  const bool by_slots = options.capacities.empty() && pooled && !options.pools.empty();
  if (options.capacities.empty() && !by_slots)
    throw Error(ErrorKind::kUsage, "the caches have no capacity")
        .in(Setting::kCapacity)
        .expected(pooled ? "experts (64), a size (4GiB), or " + Setting::kPools + " alone"
                         : "experts (64) or a size (4GiB)")
        .found("none")
        .fix("give " + Setting::kCapacity);
  const std::vector<std::string> capacities =
      by_slots ? std::vector<std::string>{"-"} : split_list(options.capacities, Setting::kCapacity);
  std::vector<CacheRow> rows;
  for (const std::string& capacity : capacities)
    for (const std::string& cache : caches) {
      CacheRow row;
      row.capacity = capacity;
      row.router = router;
      row.settings.cache = cache;
      row.settings.scope = options.scope != "global" ? lab::Scope::kLayer : lab::Scope::kGlobal;
      row.settings.keep = options.keep == "full" ? experts::Parts(experts::Part::kFull)
                                                 : experts::Part::kSm | experts::Part::kExp;
      row.settings.seed = options.seed();
      row.settings.window = options.window;
      if (!by_slots) set_capacity(capacity, row.settings);
      fill_slots(options, row.settings);
      rows.push_back(std::move(row));
    }
  return rows;
}

void set_capacity_of_slots(std::uint32_t layers, std::vector<CacheRow>& rows) {
  for (CacheRow& row : rows) {
    const experts::PoolSlots& slots = *row.settings.pools;
    row.settings.capacity = (std::uint64_t{slots.f} + slots.c + slots.s + slots.e) *
                            (row.settings.scope == lab::Scope::kLayer ? 1 : layers);
    row.capacity = std::to_string(row.settings.capacity);
  }
}

}  // namespace sluice::app
