#include "reproduce/zipmoe/makespan_ratio.h"

#include <algorithm>
#include <random>
#include <vector>

#include "experts/registry.h"
#include "experts/schedule/makespan.h"

namespace sluice::reproduce {

MakespanRatio makespan_ratio(const std::string& scheduler, std::size_t instances, std::uint64_t seed) {
  const auto policy = experts::find_scheduler(scheduler).make();
  std::mt19937_64 random(seed);
  const auto draw = [&](double most) { return static_cast<double>(random() % 10001) / 10000 * most; };
  MakespanRatio ratio;
  std::vector<experts::Task> tasks;
  experts::Schedule schedule;
  for (std::size_t i = 0; i < instances; ++i) {
    constexpr unsigned kChunks[] = {1, 2, 4}, kWorkers[] = {1, 2, 3, 6};
    experts::ScheduleCosts costs{
        .chunks = kChunks[random() % 3], .workers = kWorkers[random() % 4], .u = .5 + draw(10)};
    costs.v = (.25 + draw(.5)) * costs.u / costs.chunks;
    costs.c = draw(2) * costs.u / costs.chunks;
    const std::uint64_t count = 2 + random() % 7, tensors = 1 + 2 * (random() % 2);
    tasks.clear();
    for (std::uint16_t e = 0; e < count; ++e) {
      const auto state = static_cast<experts::State>("MESC"[random() % 4]);
      const double run = draw(10);
      for (std::uint16_t t = 0; t < tensors; ++t)
        tasks.push_back({.expert = {0, e}, .tensor = t, .state = state, .run = run});
    }
    policy->order(tasks, costs, schedule);
    const double least = experts::lower_bounds(tasks, costs).most();
    if (least <= 0) continue;
    const double one = experts::simulate(tasks, costs, schedule).makespan / least;
    ratio.instances += 1;
    ratio.mean += one;
    ratio.worst = std::max(ratio.worst, one);
    ratio.worst_of_bound = std::max(ratio.worst_of_bound, one / (3 - 1.0 / costs.workers));
  }
  if (ratio.instances > 0) ratio.mean /= static_cast<double>(ratio.instances);
  return ratio;
}

}  // namespace sluice::reproduce
