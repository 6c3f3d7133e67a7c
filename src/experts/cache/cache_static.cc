// Sets of experts that do not follow their use.
//
// Static: experts stay in the order of layers as far as the budget goes, and all others are read at every
// use, as offloading by a device map does. An expert comes in at its first use and takes the place of
// experts of later layers that were used before it. SPEC §1.10, `z-accelerate`.
//
// Static-layers, static-popular and static-random are chosen before the first event and never change: whole
// layers, the last ones first, as llama.cpp keeps them on a device; the most used experts of each layer, as
// Fiddler does; or experts that are drawn, SMoE's base. Without a start (CacheConfig::layers) they keep
// nothing. SPEC §2.7, §3.7 and §10 (G11).
#include <algorithm>
#include <map>
#include <numeric>

#include "experts/cache/cache_policies.h"
#include "experts/cache/drawn_start.h"
#include "experts/cache/event_cache.h"

namespace sluice::experts {
namespace {

class StaticCache final : public EventCache {
 public:
  explicit StaticCache(Parts keep) : keep_(keep) {}

  bool decide_event(const StepReport& report, const ExpertSizes& sizes, Bytes capacity,
                    EventDecision& out) override {
    for (const ExpertId id : report.misses) {
      const Bytes bytes = sizes.bytes(id).of(keep_);
      Bytes later = 0;  // bytes of experts that would make room, the last one first
      auto first = resident_.end();
      while (used_ - later + bytes > capacity && first != resident_.begin() && std::prev(first)->first > id)
        later += (--first)->second;
      if (used_ - later + bytes > capacity) continue;
      for (auto victim = first; victim != resident_.end(); victim = resident_.erase(victim))
        out.victims.push_back({victim->first, keep_});
      resident_.emplace(id, bytes);
      used_ += bytes - later;
      out.placed.push_back({id, keep_});
    }
    return true;
  }
  std::string name() const override { return "static"; }

 private:
  const Parts keep_;
  std::map<ExpertId, Bytes> resident_;
  Bytes used_ = 0;
};

ExpertId id_of(std::uint32_t layer, std::uint32_t expert) {
  return {static_cast<std::uint16_t>(layer), static_cast<std::uint16_t>(expert)};
}

class FixedSetCache : public EventCache {
 public:
  explicit FixedSetCache(const CacheConfig& config) : keep_(config.keep), layers_(config.layers) {}
  bool decide_event(const StepReport&, const ExpertSizes&, Bytes, EventDecision&) override { return true; }

 protected:
  const Parts keep_;
  const CachedLayers layers_;
};

class StaticLayersCache final : public FixedSetCache {
 public:
  using FixedSetCache::FixedSetCache;
  void start(const ExpertSizes& sizes, Bytes capacity, std::vector<Placed>& out) override {
    std::uint32_t first = layers_.first + layers_.layers;
    for (; first > layers_.first; --first) {
      if (layers_.leaves_out(first - 1)) continue;
      Bytes bytes = 0;
      for (std::uint32_t e = 0; e < layers_.experts; ++e) bytes += sizes.bytes(id_of(first - 1, e)).of(keep_);
      if (bytes > capacity) break;
      capacity -= bytes;
    }
    for (std::uint32_t layer = first; layer < layers_.first + layers_.layers; ++layer) {
      if (layers_.leaves_out(layer)) continue;
      for (std::uint32_t e = 0; e < layers_.experts; ++e) out.push_back({id_of(layer, e), keep_});
    }
  }
  std::string name() const override { return "static-layers"; }
};

class StaticPopularCache final : public FixedSetCache {
 public:
  explicit StaticPopularCache(const CacheConfig& config)
      : FixedSetCache(config), popularity_(config.workload.popularity) {}
  void start(const ExpertSizes& sizes, Bytes capacity, std::vector<Placed>& out) override {
    for (std::uint32_t layer = layers_.first; layer < layers_.first + layers_.layers; ++layer) {
      std::vector<std::uint32_t> order(layers_.experts);
      std::iota(order.begin(), order.end(), 0u);
      std::ranges::sort(order, [&](std::uint32_t a, std::uint32_t b) {
        return used(layer, a) != used(layer, b) ? used(layer, a) > used(layer, b) : a < b;
      });
      Bytes room = capacity / layers_.layers;
      for (const std::uint32_t e : order) {
        const Bytes bytes = sizes.bytes(id_of(layer, e)).of(keep_);
        if (bytes > room) break;
        room -= bytes;
        out.push_back({id_of(layer, e), keep_});
      }
    }
    std::ranges::sort(out, {}, &Placed::id);
  }
  std::string name() const override { return "static-popular"; }

 private:
  double used(std::uint32_t layer, std::uint32_t expert) const {
    return layer < popularity_.size() && expert < popularity_[layer].size() ? popularity_[layer][expert] : 0;
  }
  const std::vector<std::vector<double>> popularity_;
};

class StaticRandomCache final : public FixedSetCache {
 public:
  explicit StaticRandomCache(const CacheConfig& config) : FixedSetCache(config), config_(config) {}
  void start(const ExpertSizes& sizes, Bytes capacity, std::vector<Placed>& out) override {
    out = drawn_start(config_, sizes, capacity);
  }
  std::string name() const override { return "static-random"; }

 private:
  const CacheConfig config_;
};

}  // namespace

std::unique_ptr<Cache> make_static_cache(const CacheConfig& config) {
  return std::make_unique<StaticCache>(config.keep);
}
std::unique_ptr<Cache> make_static_layers_cache(const CacheConfig& config) {
  return std::make_unique<StaticLayersCache>(config);
}
std::unique_ptr<Cache> make_static_popular_cache(const CacheConfig& config) {
  return std::make_unique<StaticPopularCache>(config);
}
std::unique_ptr<Cache> make_static_random_cache(const CacheConfig& config) {
  return std::make_unique<StaticRandomCache>(config);
}

}  // namespace sluice::experts
