#include "lab/machine/layer_clock.h"

#include <algorithm>

#include "experts/core/pools.h"
#include "experts/schedule/makespan.h"

namespace sluice::lab {
namespace {

constexpr std::size_t kMostRemembered = 16;  // experts of a layer: enough for decode steps, not for prompts
constexpr std::size_t kMostLayers = std::size_t{1} << 18;

}  // namespace

LayerTime LayerClock::time(std::span<const UsedExpert> used) {
  if (used.size() > kMostRemembered) return simulate(used);
  key_.clear();
  for (const UsedExpert& expert : used) {
    key_ += static_cast<char>(expert.state);
    key_.append(reinterpret_cast<const char*>(&expert.tokens), sizeof expert.tokens);
  }
  const auto at = known_.find(key_);
  if (at != known_.end()) return at->second;
  if (known_.size() == kMostLayers) known_.clear();
  return known_.emplace(key_, simulate(used)).first->second;
}

LayerTime LayerClock::simulate(std::span<const UsedExpert> used) {
  LayerTime time;
  double ready_runs = 0;
  missing_.clear();
  for (const UsedExpert& expert : used) {
    if (expert.state == experts::State::kF)
      ready_runs += costs_.run.of(expert.tokens);
    else
      missing_.push_back({expert.id, experts::parts_of(expert.state),
                          static_cast<std::uint16_t>(costs_.tensors), expert.tokens});
  }
  const experts::Scheduler& scheduler = *decider_.policies().scheduler;
  const std::uint64_t fallbacks = scheduler.fallbacks();
  const auto& [tasks, schedule] = decider_.order(missing_);
  time.fallback = scheduler.fallbacks() != fallbacks;
  time.compute = ready_runs;
  for (const experts::Task& task : tasks)
    if (task.tensor == 0) time.compute += task.run;

  // One unit takes any ready expert, so it ends at the same time in every order, and never earlier if an
  // expert arrives later. The rest of its waiting without decoding belongs to the disk.
  experts::ScheduleCosts no_decoding = costs_.fetch;
  no_decoding.c = 0;
  time.makespan = experts::simulate(tasks, costs_.fetch, schedule, ready_runs).makespan;
  const double by_disk = experts::simulate(tasks, no_decoding, schedule, ready_runs).makespan;
  time.disk = by_disk - time.compute;
  time.decode = time.makespan - by_disk;
  const experts::LowerBounds bounds = experts::lower_bounds(tasks, costs_.fetch);
  time.least = std::max(bounds.most(), time.compute);
  return time;
}

}  // namespace sluice::lab
