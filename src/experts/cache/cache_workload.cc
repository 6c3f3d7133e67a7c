// The caches that follow the work of a layer's experts: DALI's window and our fading average. A used expert
// comes in only where there is room; after that, residents change places with other experts when the step, or
// the window, is over. DALI (Alg. 2); SPEC §3.5.
#include <algorithm>
#include <map>

#include "experts/cache/cache_policies.h"
#include "experts/cache/drawn_start.h"
#include "experts/cache/event_cache.h"

namespace sluice::experts {
namespace {

// Core: WorkloadWindow or WorkloadEma.
template <class Core>
class WorkloadCache final : public EventCache {
 public:
  WorkloadCache(const char* name, const Core& fresh, const CacheConfig& config)
      : name_(name), fresh_(fresh), config_(config), keep_(config.keep) {}

  void start(const ExpertSizes& sizes, Bytes capacity, std::vector<Placed>& out) override {
    for (std::uint32_t i = 0; i < config_.layers.layers; ++i)
      layer_of(static_cast<std::uint16_t>(config_.layers.first + i), config_.layers.experts);
    out = drawn_start(config_, sizes, capacity);
    for (const Placed& one : out) {
      layers_by_number_.at(one.id.layer).resident[one.id.index] = 1;
      used_ += sizes.bytes(one.id).of(keep_);
    }
  }

  bool decide_event(const StepReport& report, const ExpertSizes& sizes, Bytes capacity,
                    EventDecision& out) override {
    count(report);
    const bool filled = fill_room(report, sizes, capacity, out);
    for (const std::uint16_t number : counted_) {
      Layer& layer = layers_by_number_.at(number);
      const bool prompt = report.place.step == StepKind::kPrompt;
      layer.in_prompt = prompt;
      const std::span<const Swap> swaps =
          prompt ? layer.core.chunk(layer.resident) : layer.core.end_step(layer.resident);
      if (filled) continue;  // while there is room nobody has to leave
      for (const Swap& one : swaps)
        if (!swap(number, layer, one, report, sizes, capacity, out)) break;
    }
    std::ranges::sort(out.placed, {}, &Placed::id);
    return true;
  }
  std::string name() const override { return name_; }

 private:
  struct Layer {
    Core core;
    std::vector<std::uint8_t> resident;  // (N)
    bool in_prompt = false;              // the last step had prompt tokens
  };

  Layer& layer_of(std::uint16_t number, std::uint32_t experts) {
    Layer& layer = layers_by_number_.try_emplace(number, Layer{fresh_, {}, false}).first->second;
    layer.core.grow(experts);
    layer.resident.resize(layer.core.experts());
    return layer;
  }

  // Adds the event's tokens; counted_: the layers that have some, or none because the event used none.
  void count(const StepReport& report) {
    counted_.clear();
    const auto touch = [&](std::uint16_t number, std::uint32_t experts) -> Layer& {
      Layer& layer = layer_of(number, experts);
      if (std::ranges::find(counted_, number) != counted_.end()) return layer;
      counted_.push_back(number);
      if (layer.in_prompt && report.place.step == StepKind::kDecode) layer.core.forget();
      return layer;
    };
    if (!report.place.layer_tokens.empty()) {
      const auto experts = static_cast<std::uint32_t>(report.place.layer_tokens.size());
      touch(static_cast<std::uint16_t>(report.place.layer), experts).core.add(report.place.layer_tokens);
      return;
    }
    for (std::size_t i = 0; i < report.used.size(); ++i) {
      const ExpertId id = report.used[i];
      Core& core = touch(id.layer, id.index + 1u).core;
      one_.assign(core.experts(), 0);
      one_[id.index] = report.tokens.empty() ? 1 : report.tokens[i];
      core.add(one_);
    }
  }

  bool fill_room(const StepReport& report, const ExpertSizes& sizes, Bytes capacity, EventDecision& out) {
    for (const ExpertId id : report.misses) {
      Layer& layer = layer_of(id.layer, id.index + 1u);
      const Bytes bytes = sizes.bytes(id).of(keep_);
      if (layer.resident[id.index] != 0 || bytes > capacity - used_) continue;
      layer.resident[id.index] = 1;
      used_ += bytes;
      out.placed.push_back({id, keep_});
    }
    return !out.placed.empty();
  }

  // False: there is room without a swap, or none even with it.
  bool swap(std::uint16_t number, Layer& layer, const Swap& swap, const StepReport& report,
            const ExpertSizes& sizes, Bytes capacity, EventDecision& out) {
    const ExpertId in{number, static_cast<std::uint16_t>(swap.in)},
        gone{number, static_cast<std::uint16_t>(swap.out)};
    const Bytes left = used_ - sizes.bytes(gone).of(keep_), bytes = sizes.bytes(in).of(keep_);
    if (bytes <= capacity - used_ || bytes > capacity - left) return false;
    used_ = left + bytes;
    layer.resident[swap.in] = 1;
    layer.resident[swap.out] = 0;
    out.victims.push_back({gone, keep_});
    (std::ranges::binary_search(report.used, in) ? out.placed : out.fetched).push_back({in, keep_});
    return true;
  }

  const char* name_;
  const Core fresh_;
  const CacheConfig config_;
  const Parts keep_;
  std::map<std::uint16_t, Layer> layers_by_number_;
  Bytes used_ = 0;
  std::vector<std::uint16_t> counted_;
  std::vector<std::uint32_t> one_;
};

std::unique_ptr<Cache> make_window(const char* name, bool unconditional, const CacheConfig& config) {
  WindowRules rules = config.workload.window;
  rules.unconditional = unconditional;
  return std::make_unique<WorkloadCache<WorkloadWindow>>(name, WorkloadWindow(0, rules), config);
}

}  // namespace

std::unique_ptr<Cache> make_workload_window_cache(const CacheConfig& config) {
  return make_window("workload-window", false, config);
}
std::unique_ptr<Cache> make_workload_window_unconditional_cache(const CacheConfig& config) {
  return make_window("workload-window-unconditional", true, config);
}
std::unique_ptr<Cache> make_workload_ema_cache(const CacheConfig& config) {
  return std::make_unique<WorkloadCache<WorkloadEma>>("workload-ema", WorkloadEma(0, config.workload.ema),
                                                      config);
}

}  // namespace sluice::experts
