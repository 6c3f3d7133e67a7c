#include "experts/schedule/makespan.h"

#include <algorithm>
#include <map>

#include "experts/schedule/block_eval.h"

namespace sluice::experts {
namespace {

// Gives each expert its start and end, from `now` on. Returns the end of the last expert.
double run_experts(std::span<ExpertRun> runs, std::span<const double> run_time, double now) {
  std::vector<bool> done(runs.size());
  for (std::size_t left = runs.size(); left > 0; --left) {
    std::size_t next = runs.size();
    for (std::size_t i = 0; i < runs.size(); ++i) {
      if (done[i]) continue;
      const bool better = next == runs.size() || (runs[next].ready > now && runs[i].ready < runs[next].ready);
      if (better) next = i;
      if (runs[next].ready <= now) break;
    }
    done[next] = true;
    runs[next].start = std::max(now, runs[next].ready);
    now = runs[next].end = runs[next].start + run_time[next];
  }
  return now;
}

}  // namespace

Timeline simulate(std::span<const Task> tasks, const ScheduleCosts& costs, const Schedule& schedule,
                  double busy) {
  Timeline timeline;
  timeline.ready.resize(tasks.size());
  BlockEval eval(tasks, costs);
  BlockClock clock;
  clock.workers.resize(costs.workers);
  std::size_t begin = 0;
  for (std::uint32_t end : schedule.block_end) {
    timeline.idle += eval.run(std::span(schedule.order).subspan(begin, end - begin), clock, &timeline.ready);
    begin = end;
  }

  std::map<ExpertId, std::size_t> place;
  std::vector<double> run_time;
  for (std::uint32_t task : schedule.order) {
    const auto [at, inserted] = place.emplace(tasks[task].expert, timeline.runs.size());
    if (inserted) {
      timeline.runs.push_back({.expert = tasks[task].expert});
      run_time.push_back(tasks[task].run);
    }
    double& ready = timeline.runs[at->second].ready;
    ready = std::max(ready, timeline.ready[task]);
  }
  timeline.makespan = std::max(run_experts(timeline.runs, run_time, busy), clock.io);
  timeline.io = clock.io;
  timeline.workers = std::move(clock.workers);
  std::ranges::sort(timeline.workers);
  for (double worker : timeline.workers) timeline.makespan = std::max(timeline.makespan, worker);
  return timeline;
}

double LowerBounds::most() const { return std::max({io, decode, run, path}); }

LowerBounds lower_bounds(std::span<const Task> tasks, const ScheduleCosts& costs) {
  BoundsScratch scratch;
  return lower_bounds(tasks, costs, scratch);
}

LowerBounds lower_bounds(std::span<const Task> tasks, const ScheduleCosts& costs, BoundsScratch& scratch) {
  LowerBounds bounds;
  const double chunks = costs.chunks;
  auto& [eval, clock, ready, runs] = scratch;
  eval.reset(tasks, costs);
  ready.assign(tasks.size(), 0.0);
  runs.clear();
  for (std::uint32_t i = 0; i < tasks.size(); ++i) {
    bounds.io +=
        (reads_exp(tasks[i].state) ? chunks * costs.v : 0) + (reads_sm(tasks[i].state) ? costs.u : 0);
    runs.emplace_back(tasks[i].expert, tasks[i].run);
    clock.io = 0;
    clock.workers.assign(costs.workers, 0.0);
    eval.run({&i, 1}, clock, &ready);
    bounds.path = std::max(bounds.path, ready[i] + tasks[i].run);
  }
  bounds.decode = static_cast<double>(tasks.size()) * chunks * costs.c / costs.workers;
  std::ranges::sort(runs);
  for (std::size_t i = 0; i < runs.size(); ++i)  // each expert once
    if (i == 0 || runs[i].first != runs[i - 1].first) bounds.run += runs[i].second;
  return bounds;
}

}  // namespace sluice::experts
