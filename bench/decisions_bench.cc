// sluice_bench_decisions [--rounds N] [--json FILE]
// The cost of decisions on one core: schedulers of a layer's tasks in µs per call and ns per tried decode
// (the value for ScheduleCosts::step), rank models and plans in ms. Checks that every task is ordered once,
// that the search is the cheaper of guarded and free, and that plans are the best of their grid's corners.
#include <fmt/format.h>

#include <cmath>
#include <numeric>
#include <random>
#include <set>

#include "experts/plan/planner.h"
#include "experts/registry.h"
#include "measure.h"
#include "report.h"

namespace sluice {
namespace {

using namespace experts;
using bench::require;
using bench::Workload;

// Three tensors per expert, in random states: the needs of one layer for one token.
std::vector<Task> random_tasks(std::size_t count, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<Task> tasks;
  for (std::uint16_t expert = 0; tasks.size() < count; ++expert) {
    const State state = static_cast<State>("MESC"[random() % 4]);
    for (std::uint16_t t = 0; t < 3 && tasks.size() < count; ++t) {
      tasks.push_back({.expert = {0, expert}, .tensor = t, .state = state, .run = 0.2e-3});
    }
  }
  return tasks;
}

// In seconds: P = 8.65 M weights per expert, 3.5 GB/s, a third of the exponent bytes left, 1 GB/s per worker.
ScheduleCosts costs(unsigned chunks, unsigned workers) {
  const double bytes = 8650752 / 3.0;
  return {.chunks = chunks,
          .workers = workers,
          .u = bytes / 3.5e9,
          .v = .36 * bytes / chunks / 3.5e9,
          .c = bytes / chunks / 1e9};
}

void bench_schedulers(std::size_t rounds, bench::Report& report) {
  fmt::print("schedulers: µs a call, median (fastest … slowest) of {} instances\n", rounds);
  for (const auto& [count, chunks, workers] :
       {std::tuple(12u, 4u, 6u), std::tuple(24u, 4u, 6u), std::tuple(32u, 8u, 12u)}) {
    for (const SchedulerPolicy& policy : scheduler_policies()) {
      for (const double step : {0.0, 10e-9}) {
        if (step > 0 && !policy.name.starts_with("zip")) continue;
        const auto scheduler = policy.make();
        ScheduleCosts with = costs(chunks, workers);
        with.step = step;
        Schedule schedule;
        std::vector<std::vector<Task>> instances;
        for (std::size_t i = 0; i <= rounds; ++i) instances.push_back(random_tasks(count, i));
        std::vector<Workload> work = {
            {std::string(policy.name), [&](std::size_t round) {
               scheduler->order(instances[round], with, schedule);
               require(std::set(schedule.order.begin(), schedule.order.end()).size() == count, "order");
             }}};
        bench::measure(work, rounds);
        fmt::print("  {:2} tasks K={} L={:2} {:22}{:11} {:8.1f} ({:.1f} … {:.1f}), {} fell back\n", count,
                   chunks, workers, policy.name, step > 0 ? " (guarded)" : "",
                   1e6 * bench::quantile(work[0].seconds, .5), 1e6 * bench::quantile(work[0].seconds, 0),
                   1e6 * bench::quantile(work[0].seconds, 1), scheduler->fallbacks());
        // The engine's own setting, at the size of a layer of 8 experts.
        const bool shown = count == 24 && step > 0;
        report.add(
            {.name = fmt::format("schedule {} tasks, {}{}", count, policy.name, step > 0 ? ", guarded" : ""),
             .seconds = work[0].seconds,
             .detail = !shown});
      }
    }
  }
}

// f_r = min(.98, m r^-.8), with m such that the sum is k.
std::vector<double> power_law(std::uint32_t n, double k) {
  std::vector<double> f(n);
  double low = 0, high = 100;
  for (int i = 0; i < 200; ++i) {
    const double m = (low + high) / 2;
    for (std::uint32_t r = 0; r < n; ++r) f[r] = std::min(.98, m * std::pow(r + 1, -.8));
    (std::accumulate(f.begin(), f.end(), 0.0) < k ? low : high) = m;
  }
  return f;
}

void bench_planner(std::size_t rounds, bench::Report& report) {
  fmt::print("rank model and plan, grid .05, all four pools\n");
  for (const auto& [n, k] :
       {std::pair(64u, 6u), std::pair(64u, 8u), std::pair(128u, 8u), std::pair(128u, 16u)}) {
    const std::vector<double> f = power_law(n, k);
    RankModel odds, ratio;
    ZipPlan plan;
    const PlanRequest request{.memory = n / 3.0, .sizes = {2, 1.36, 1, .36}, .grid = .05};
    const LayerCosts layer{.tensors = 3, .schedule = {.chunks = 4, .workers = 6, .u = 1, .v = .09, .c = .1}};
    std::vector<Workload> work = {
        {"rank model, odds", [&](std::size_t) { odds = make_rank_model(f, k); }},
        {"rank model, ratio", [&](std::size_t) { ratio = make_rank_model(f, k, WeightUpdate::kRatio); }},
        {"plan", [&](std::size_t) { plan = make_zip_plan(odds, layer, request); }}};
    bench::measure(work, rounds);
    require(plan.configurations == 1771, "configurations");
    for (State pool : kPools) require(plan.expected.cost <= *plan.costs_of[pool], "best");
    for (const Workload& w : work) {
      fmt::print("  N={:3} k={:2} {:18} {}\n", n, k, w.name, bench::times(w));
      report.add({.name = fmt::format("{}, N={} k={}", w.name, n, k),
                  .seconds = w.seconds,
                  .detail = n != 128 || k != 8});
    }
    fmt::print("  N={:3} k={:2} {} and {} updates; cost {:.5f}, F alone {:.5f}\n", n, k, odds.iterations,
               ratio.iterations, plan.expected.cost, *plan.costs_of.f);
  }
}

}  // namespace
}  // namespace sluice

int main(int argc, char** argv) try {
  sluice::bench::check_options(argc, argv, {"rounds", "json"});
  const std::size_t rounds = sluice::bench::whole_option(argc, argv, "rounds", 200);
  sluice::bench::Report report("decisions", argc, argv);
  sluice::bench_schedulers(rounds, report);
  sluice::bench_planner(std::min<std::size_t>(rounds, 5), report);
  report.write();
} catch (const std::exception& error) {
  fmt::print(stderr, "sluice_bench_decisions: {}\n", error.what());
  return 1;
}
