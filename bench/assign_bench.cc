// sluice_bench_assign [--traces FILE,FILE] [--batches N] [--rounds N] [--json FILE]
// How near the splits of a layer come to the least makespan on recorded routing, and what a split costs. A
// batch B takes the file's sequences in order; an ended one is replaced by the next, until fewer than B are
// left. Each layer of each step is one instance; of all instances, N at even distances count. Without traces
// only the cost is measured. Checks that every split is legal, that its times are the sums of its sides, and
// that no split beats the optimum.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>
#include <sstream>

#include "experts/placement/beam_split.h"
#include "experts/placement/greedy_split.h"
#include "experts/placement/optimal_split.h"
#include "experts/placement/ratio_prefix_split.h"
#include "measure.h"
#include "recorded_batches.h"
#include "report.h"

namespace sluice {
namespace {

using namespace experts;
using bench::require;

// In µs. Both have DeepSeek-V2-Lite's experts on one machine: as SPEC §3.3 has it, and fitted to DALI's table
// 4 (SPEC §10, G7), which does not tell the device's compute time.
struct Costs {
  std::string name;
  double transfer, compute, host_fixed, host_token;
};
const Costs kCosts[] = {{"SPEC 3.3", 541, 30, 60, 90}, {"G7 fit", 1000, 30, 0, 300}};

struct Instance {
  std::vector<std::uint32_t> tokens;
  std::vector<double> host, device;
  std::vector<std::uint8_t> resident;
  SplitCosts costs() const { return {tokens, host, device, resident, kAnySlots}; }
};

void set_times(Instance& layer, const Costs& costs) {
  layer.host.clear();
  layer.device.clear();
  for (std::size_t e = 0; e < layer.tokens.size(); ++e) {
    const std::uint32_t w = layer.tokens[e];
    layer.host.push_back(w == 0 ? 0 : costs.host_fixed + costs.host_token * w);
    layer.device.push_back(w == 0 ? 0 : std::max(layer.resident[e] != 0 ? 0 : costs.transfer, costs.compute));
  }
}

template <class Method>
double makespan(Method& method, const Instance& layer) {
  thread_local std::vector<std::uint8_t> on_device;  // a byte an expert, so that no allocation is timed
  on_device.assign(layer.tokens.size(), 2);
  const SplitTimes times = method.split(layer.costs(), on_device);
  SplitTimes sums;
  for (std::size_t e = 0; e < layer.tokens.size(); ++e) {
    require(on_device[e] <= (layer.tokens[e] > 0 ? 1 : 0), "side");
    if (layer.tokens[e] > 0)
      (on_device[e] != 0 ? sums.device += layer.device[e] : sums.host += layer.host[e]);
  }
  require(std::abs(sums.device - times.device) <= 1e-9 * sums.device &&
              std::abs(sums.host - times.host) <= 1e-9 * sums.host,
          "times");
  return times.makespan();
}

// Tokens by expert, of `wanted` layers of steps of a batch.
using Counts = std::vector<std::uint32_t>;
std::vector<Counts> instances_of(bench::RecordedBatches& batches, std::size_t batch, std::size_t wanted) {
  const std::size_t all = batches.batch(batch) * batches.layers();
  std::vector<Counts> instances(std::min(wanted, all));
  for (std::size_t i = 0; i < instances.size(); ++i) {
    const std::size_t at = i * all / instances.size();
    batches.count(at / batches.layers(), at % batches.layers(), instances[i]);
  }
  return instances;
}

// Makespans over the least one.
struct Ratios {
  std::vector<double> all;
  double mean() const {
    return std::accumulate(all.begin(), all.end(), 0.0) / static_cast<double>(all.size());
  }
  double most() const { return std::ranges::max(all); }
  double within(double limit) const {
    return 100. * static_cast<double>(std::ranges::count_if(all, [&](double r) { return r <= limit; })) /
           static_cast<double>(all.size());
  }
};

struct Methods {
  GreedySplit greedy;
  BeamSplit beam{2};
  RatioPrefixSplit ratio_prefix;
  OptimalSplit optimal{1 << 22};
};

void compare(const std::string& path, std::size_t wanted, Methods& methods, std::size_t& rows,
             std::size_t& missed) {
  bench::RecordedBatches batches(path);
  fmt::print("{}: {} sequences, {} layers of {} experts\n", path, batches.sequences(), batches.layers(),
             batches.experts());
  fmt::print(
      "   B  costs     resident  batches  active   greedy (most)     beam 2   ratio-prefix (most)   <= "
      "1.01\n");
  for (const std::size_t batch : {4u, 8u, 12u, 16u, 32u, 64u}) {
    const std::vector<Counts> instances = instances_of(batches, batch, wanted);
    if (instances.empty()) {
      fmt::print("{:4}  fewer sequences than that\n", batch);
      continue;
    }
    for (const Costs& costs : kCosts) {
      for (const std::uint32_t share : {0u, 2u}) {  // none, or one in two, drawn anew for each instance
        std::mt19937_64 random(batch + share);
        Ratios greedy, beam, ratio_prefix;
        std::size_t active = 0;
        for (const Counts& counts : instances) {
          Instance layer{.tokens = counts,
                         .host = {},
                         .device = {},
                         .resident = std::vector<std::uint8_t>(counts.size())};
          if (share > 0) std::fill_n(layer.resident.begin(), counts.size() / share, std::uint8_t{1});
          std::shuffle(layer.resident.begin(), layer.resident.end(), random);
          set_times(layer, costs);
          const double least = makespan(methods.optimal, layer);
          greedy.all.push_back(makespan(methods.greedy, layer) / least);
          beam.all.push_back(makespan(methods.beam, layer) / least);
          ratio_prefix.all.push_back(makespan(methods.ratio_prefix, layer) / least);
          active +=
              static_cast<std::size_t>(std::ranges::count_if(counts, [](std::uint32_t w) { return w > 0; }));
          for (const Ratios* r : {&greedy, &beam, &ratio_prefix})
            require(r->all.back() >= 1 - 1e-12, "optimum");
        }
        const bool reached = ratio_prefix.mean() <= 1.01;
        ++rows, missed += reached ? 0 : 1;
        fmt::print(
            "{:4}  {:8}  {:6} %  {:7}  {:6.1f}   {:.4f} ({:.3f})   {:.4f}   {:.4f} ({:.3f})       {:5.1f} "
            "%{}\n",
            batch, costs.name, share == 0 ? 0 : 100 / share, instances.size(),
            static_cast<double>(active) / static_cast<double>(instances.size()), greedy.mean(), greedy.most(),
            beam.mean(), ratio_prefix.mean(), ratio_prefix.most(), ratio_prefix.within(1.01),
            reached ? "" : "  missed");
      }
    }
  }
}

// 128 active experts with any number of tokens up to 64, half of them resident.
void measure_costs(std::size_t rounds, bench::Report& report) {
  std::mt19937_64 random(20261101);
  std::vector<Instance> layers(rounds + 1);
  for (Instance& layer : layers) {
    for (int e = 0; e < 128; ++e) {
      layer.tokens.push_back(static_cast<std::uint32_t>(1 + random() % 64));
      layer.resident.push_back(static_cast<std::uint8_t>(random() % 2));
    }
    set_times(layer, kCosts[0]);
  }
  Methods methods;
  std::vector<std::uint8_t> on_device(128);
  double sum = 0;
  const auto split_by = [&](auto& method) {
    return [&](std::size_t round) { sum += method.split(layers[round].costs(), on_device).makespan(); };
  };
  std::vector<bench::Workload> work = {{"greedy", split_by(methods.greedy)},
                                       {"beam 2", split_by(methods.beam)},
                                       {"ratio-prefix", split_by(methods.ratio_prefix)},
                                       {"optimal", split_by(methods.optimal)}};
  bench::measure(work, rounds);
  require(std::isfinite(sum), "sum");
  fmt::print("a split of 128 active experts: µs, median (fastest … slowest) of {} instances\n", rounds);
  for (const bench::Workload& w : work) {
    fmt::print("  {:14} {:7.2f} ({:.2f} … {:.2f})\n", w.name, 1e6 * bench::quantile(w.seconds, .5),
               1e6 * bench::quantile(w.seconds, 0), 1e6 * bench::quantile(w.seconds, 1));
    report.add({.name = "split 128 experts, " + w.name, .seconds = w.seconds});
  }
}

}  // namespace
}  // namespace sluice

int main(int argc, char** argv) try {
  using namespace sluice;  // NOLINT
  bench::check_options(argc, argv, {"traces", "batches", "rounds", "json"});
  bench::Report report("assign", argc, argv);
  measure_costs(bench::whole_option(argc, argv, "rounds", 2000), report);
  report.write();
  Methods methods;
  std::size_t rows = 0, missed = 0;
  std::istringstream traces(bench::option(argc, argv, "traces", ""));
  for (std::string path; std::getline(traces, path, ',');)
    compare(path, bench::whole_option(argc, argv, "batches", 1000), methods, rows, missed);
  if (rows > 0)
    fmt::print(
        "{} rows: the mean of ratio-prefix is within 1.01 of the optimum in {}; {} optima beyond the cap\n",
        rows, rows - missed, methods.optimal.fallbacks());
  return missed == 0 && methods.optimal.fallbacks() == 0 ? 0 : 1;
} catch (const std::exception& error) {
  fmt::print(stderr, "sluice_bench_assign: {}\n", error.what());
  return 1;
}
