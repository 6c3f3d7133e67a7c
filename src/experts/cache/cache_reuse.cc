// Reuse: after each event, the experts that are least likely to be used again soon leave, by the forecast of
// their layers (workload/reuse_forecast.h); among equals the lower id. Those that the event has just used are
// no exception, so that a large event (a prompt, a batch) does not wash out what decoding needs. Ours;
// docs/cache-tournament.md.
#include <algorithm>
#include <optional>

#include "experts/cache/cache_policies.h"
#include "experts/cache/event_cache.h"
#include "experts/cache/layer_forecasts.h"

namespace sluice::experts {
namespace {

class ReuseCache final : public EventCache {
 public:
  explicit ReuseCache(Parts keep) : keep_(keep) {}

  bool decide_event(const StepReport& report, const ExpertSizes& sizes, Bytes capacity,
                    EventDecision& out) override {
    for (std::span<const ExpertId> left = report.used; !left.empty();) {
      const std::span<const ExpertId> used = first_layer(left);
      forecast(report, used);
      left = left.subspan(used.size());
    }
    Bytes used = used_;
    came_.clear();
    for (const ExpertId id : report.misses) {
      Layer& layer = layers_[id.layer];
      const Bytes bytes = sizes.bytes(id).of(keep_);
      if (bytes > capacity || layer.resident[id.index] != 0) continue;  // its resident parts make no view
      layer.resident[id.index] = 1;
      came_.push_back(id);
      used += bytes;
    }
    for (const ExpertId id : report.used) rank(id.layer);
    while (used > capacity) {
      const ExpertId id = leave();
      used -= sizes.bytes(id).of(keep_);
      if (!std::ranges::binary_search(came_, id)) out.victims.push_back({id, keep_});
    }
    for (const ExpertId id : came_)
      if (layers_[id.layer].resident[id.index] != 0) out.placed.push_back({id, keep_});
    used_ = used;
    return true;
  }
  std::string name() const override { return "reuse"; }

 private:
  struct Layer {
    std::vector<std::uint8_t> resident;   // by expert
    std::vector<std::uint16_t> in_order;  // the residents, the one that leaves first last
    bool ranked = true;
  };

  void forecast(const StepReport& report, std::span<const ExpertId> used) {
    const std::uint16_t number = used.front().layer;
    const std::size_t experts = forecasts_.on_event(report, used).experts();
    if (number >= layers_.size()) layers_.resize(number + std::size_t{1});
    layers_[number].resident.resize(experts);
    layers_[number].ranked = false;
  }

  void rank(std::uint16_t number) {
    Layer& layer = layers_[number];
    if (layer.ranked) return;
    layer.ranked = true;
    layer.in_order.clear();
    for (std::size_t i = 0; i < layer.resident.size(); ++i)
      if (layer.resident[i] != 0) layer.in_order.push_back(static_cast<std::uint16_t>(i));
    const ReuseForecast& forecast = forecasts_.of(number);
    std::ranges::sort(layer.in_order, [&](std::uint16_t a, std::uint16_t b) {
      const float x = forecast.score(a), y = forecast.score(b);
      return x != y ? x > y : a > b;
    });
  }

  // Takes out the resident of the lowest score. REQUIRES: there is one.
  ExpertId leave() {
    std::optional<ExpertId> last;
    float lowest = 0;
    for (std::size_t l = 0; l < layers_.size(); ++l) {
      if (layers_[l].in_order.empty()) continue;
      const std::uint16_t index = layers_[l].in_order.back();
      const float score = forecasts_.of(l).score(index);
      if (last && !(score < lowest)) continue;
      last = {static_cast<std::uint16_t>(l), index};
      lowest = score;
    }
    Layer& layer = layers_[last->layer];
    layer.in_order.pop_back();
    layer.resident[last->index] = 0;
    return *last;
  }

  const Parts keep_;
  LayerForecasts forecasts_;
  std::vector<Layer> layers_;
  Bytes used_ = 0;
  std::vector<ExpertId> came_;  // misses of the event that were taken in, ascending
};

}  // namespace

Bytes reuse_bytes_of_layer(std::size_t experts) { return ReuseForecast::bytes(experts); }

std::unique_ptr<Cache> make_reuse_cache(const CacheConfig& config) {
  return std::make_unique<ReuseCache>(config.keep);
}

}  // namespace sluice::experts
