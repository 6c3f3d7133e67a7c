// Zip-pools as a cache: one ZipPools (zip_pools.h) per sparse layer, which judges the layer's events whole.
// Slots limit it; it only checks the bytes. ZipMoE (arXiv 2601.21198) §5.4; SPEC §1.7.
#include <algorithm>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/setting.h"
#include "experts/cache/cache_policies.h"
#include "experts/cache/event_cache.h"
#include "experts/cache/layer_forecasts.h"
#include "experts/cache/zip_pools.h"

namespace sluice::experts {
namespace {

Error too_large(Bytes capacity, Bytes found) {
  return Error(ErrorKind::kBudget, "the slots of zip-pools do not fit its cache")
      .expected("at most " + std::to_string(capacity) + " bytes")
      .found(std::to_string(found))
      .fix("plan with less memory");
}

class ZipPoolsCache final : public EventCache {
 public:
  explicit ZipPoolsCache(const PoolsConfig& config) : config_(config) {}

  bool decide_event(const StepReport& report, const ExpertSizes& sizes, Bytes capacity,
                    EventDecision& out) override {
    std::span<const ExpertId> left = report.used;
    while (!left.empty()) {
      const std::span<const ExpertId> used = first_layer(left);
      decide_layer(report, used, sizes, out);
      left = left.subspan(used.size());
    }
    if (used_ > capacity) throw too_large(capacity, used_);  // only a cache that was not told its room
    return true;
  }
  std::string name() const override {
    return config_.rules.ranks == PoolRanks::kForecast ? "zip-reuse" : "zip-pools";
  }

 private:
  // Reports the changes of one layer between before and after the event.
  void decide_layer(const StepReport& report, std::span<const ExpertId> used, const ExpertSizes& sizes,
                    EventDecision& out) {
    const std::uint16_t layer = used.front().layer;
    active_.clear();
    for (ExpertId id : used) active_.push_back(id.index);
    ZipPools& pools = pools_of(layer);
    if (config_.rules.ranks == PoolRanks::kForecast)
      pools.on_step(active_, forecasts_.on_event(report, used).scores());
    else
      pools.on_step(active_);
    for (const ZipPools::Move& move : pools.moves()) {
      const ExpertId id{layer, move.expert};
      const Parts before = parts_of(pools.found(move.expert)), after = parts_of(pools.state(move.expert));
      const bool seen =
          std::ranges::any_of(out.victims, [&](const Eviction& gone) { return gone.id == id; }) ||
          std::ranges::find(out.reduced, id) != out.reduced.end();
      if (seen || before == after) continue;
      if (before == Part::kFull && after == Part::kSm && !std::ranges::binary_search(active_, id.index)) {
        out.reduced.push_back(id);
        used_ = used_ - sizes.bytes(id).of(before) + sizes.bytes(id).of(after);
        continue;
      }
      if (!before.has_all(after)) continue;
      out.victims.push_back({id, before - after});
      used_ -= sizes.bytes(id).of(before - after);
    }
    for (ExpertId id : used) {
      const Parts before = parts_of(pools.found(id.index)), after = parts_of(pools.state(id.index));
      if (before.has_all(after)) continue;
      out.placed.push_back({id, after});
      used_ = used_ - sizes.bytes(id).of(before) + sizes.bytes(id).of(after);
    }
  }

  ZipPools& pools_of(std::uint16_t layer) {
    while (pools_.size() <= layer) {
      const std::size_t next = pools_.size();
      pools_.emplace_back(config_.slots[std::min(next, config_.slots.size() - 1)], config_.rules);
      if (next < config_.counts.size()) pools_.back().seed(config_.counts[next]);
    }
    return pools_[layer];
  }

  PoolsConfig config_;
  std::vector<ZipPools> pools_;  // by layer
  LayerForecasts forecasts_;     // PoolRanks::kForecast
  Bytes used_ = 0;
  std::vector<std::uint16_t> active_;  // scratch
};

}  // namespace

void PoolsConfig::validate() const {
  const auto refuse = [](const char* what, const std::string& found, const char* expected) {
    throw Error(ErrorKind::kUsage, what).in("zip-pools").expected(expected).found(found);
  };
  for (const PoolSlots& layer : slots) {
    if (whole_only && (layer.c != 0 || layer.s != 0 || layer.e != 0)) {
      refuse("experts of this model are stored whole", "slots of other pools", "slots of pool F only");
    }
  }
  if (room && !slots.empty()) {
    Bytes need = 0;
    for (std::uint32_t layer = 0; layer < room->layers; ++layer)
      for (const State pool : kPools)
        need += Bytes{slots[std::min<std::size_t>(layer, slots.size() - 1)][pool]} *
                room->largest.of(parts_of(pool));
    if (need > room->capacity) throw too_large(room->capacity, need);
  }
  if (!(rules.half_life >= 0) || rules.half_life > 1e12) {
    refuse("the half-life of the counts is out of range", std::to_string(rules.half_life),
           "0 (off) to 1e12 steps");
  }
  for (const std::vector<double>& layer : counts) {
    for (double count : layer) {
      if (!(count >= 0) || count > 1e15)
        refuse("an activation count is out of range", std::to_string(count), "0 to 1e15");
    }
  }
}

std::unique_ptr<Cache> make_zip_pools_cache(const CacheConfig& config) {
  if (config.pools.slots.empty()) {
    throw Error(ErrorKind::kUsage, "zip-pools must be told its slots")
        .in(Setting::kCache)
        .expected("slots of each layer, from a plan or " + Setting::kPools)
        .found("none")
        .fix("use it with a plan");
  }
  if (config.keep.has(Part::kMsb)) {
    throw Error(ErrorKind::kUsage, "zip-pools cannot hold slices")
        .in(Setting::kCache)
        .expected("experts that are stored whole or split")
        .found("experts in slices")
        .fix("use the cache slice-lru");
  }
  return std::make_unique<ZipPoolsCache>(config.pools);
}

std::unique_ptr<Cache> make_zip_reuse_cache(const CacheConfig& config) {
  CacheConfig ranked = config;
  ranked.pools.rules.ranks = PoolRanks::kForecast;
  return make_zip_pools_cache(ranked);
}

}  // namespace sluice::experts
