#include "engine/plan/unit_forecast.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <vector>

#include "base/error.h"
#include "experts/core/demand.h"
#include "experts/placement/placement.h"
#include "experts/schedule/hybrid_timeline.h"

namespace sluice::engine {
namespace {

using experts::ExpertId;
using experts::Unit;

// A layer in which every active expert has as many tokens, and the first of them are on the device.
class Layer {
 public:
  Layer(const experts::ExpertCosts& costs, const UnitShape& shape, const UnitForecast& what)
      : costs_(costs), shape_(shape) {
    const double each = static_cast<double>(what.tokens) * shape.top_k / std::max(1u, what.active);
    const auto tokens = static_cast<std::uint32_t>(std::max(1.0, std::round(each)));
    for (std::uint32_t e = 0; e < what.active; ++e) {
      const bool there = e < what.resident;
      ids_.push_back({0, static_cast<std::uint16_t>(e)});
      tokens_.push_back(tokens);
      t_host_.push_back(costs.run.of(tokens));
      t_device_.push_back(costs.device.run.of(tokens));
      transfer_.push_back(there || costs.device.in_place ? 0 : costs.device.transfer);
      on_device_.push_back(there ? 1 : 0);
    }
  }

  // Divided by `placement`; counts what the device does.
  double seconds(experts::Placement& placement, UnitForecast* counts = nullptr) const {
    experts::Assignment assignment;
    placement.assign(
        {ids_, tokens_},
        {.t_host = t_host_, .t_device = t_device_, .transfer = transfer_, .on_device = on_device_},
        assignment);
    std::vector<double> host, resident;
    std::vector<experts::LinkLoad> loads;
    double rows = 0;
    for (std::size_t e = 0; e < ids_.size(); ++e) {
      if (assignment.unit[e] == Unit::kHost) {
        host.push_back(t_host_[e]);
        rows += costs_.device.row * tokens_[e];
      } else if (transfer_[e] == 0) {
        resident.push_back(t_device_[e]);
      } else {
        loads.push_back({ids_[e], transfer_[e], t_device_[e]});
      }
    }
    if (counts != nullptr) {
      counts->on_device = static_cast<std::uint32_t>(resident.size() + loads.size());
      counts->copied = static_cast<std::uint32_t>(loads.size());
    }
    experts::HybridTimeline clock;
    clock.decide(
        {.sync = costs_.device.sync, .policy = costs_.device.policy, .launch = costs_.device.launch});
    return clock
        .run({.host = host, .rows = rows, .resident = resident, .loads = loads, .buffers = shape_.buffers})
        .combined;
  }

 private:
  const experts::ExpertCosts& costs_;
  const UnitShape& shape_;
  std::vector<ExpertId> ids_;
  std::vector<std::uint32_t> tokens_;
  std::vector<double> t_host_, t_device_, transfer_;
  std::vector<std::uint8_t> on_device_;
};

}  // namespace

UnitForecast forecast_units(const experts::ExpertCosts& costs, const UnitShape& shape, std::uint32_t tokens,
                            Resident resident) {
  SLUICE_CHECK(shape.experts > 0 && shape.top_k <= shape.experts && tokens > 0);
  const double idle = 1 - static_cast<double>(shape.top_k) / shape.experts;
  const double active = shape.experts * (1 - std::pow(idle, tokens));
  UnitForecast forecast{.tokens = tokens};
  forecast.active = std::clamp(static_cast<std::uint32_t>(std::lround(active)), shape.top_k, shape.experts);
  const double share = static_cast<double>(shape.slots) / shape.experts;
  forecast.resident = resident == Resident::kMost
                          ? std::min(forecast.active, shape.slots)
                          : static_cast<std::uint32_t>(std::lround(forecast.active * share));
  const Layer layer(costs, shape, forecast);
  forecast.host = layer.seconds(*experts::make_cpu_placement());
  forecast.device = layer.seconds(*experts::make_device_placement());
  forecast.both = layer.seconds(*experts::make_ratio_prefix_placement(), &forecast);
  return forecast;
}

bool device_helps_nowhere(const experts::ExpertCosts& costs, const UnitShape& shape,
                          std::uint32_t most_tokens) {
  // In each step a cache takes about one expert of a layer in the place of another; no layer is computed
  // faster than the link carries that.
  const double update = shape.slots == 0 || costs.device.in_place ? 0 : costs.device.transfer;
  for (std::uint32_t tokens = 1; tokens <= most_tokens; tokens *= 2) {
    const UnitForecast forecast = forecast_units(costs, shape, tokens, Resident::kMost);
    if (forecast.device_helps() && update < forecast.host) return false;
  }
  return true;
}

}  // namespace sluice::engine
