// sluice_bench_workload --traces FILE,FILE
// What DALI's workload cache, our variant of it and LRU keep of recorded routing: the shares of experts
// and of tokens that find theirs on the device, and transfers to it, a step and layer. Each layer has a
// cache of its own; all start with the same random residents. The workload caches load nothing but what they
// swap in; LRU loads every miss. Checks that each cache holds exactly its slots.
#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <random>
#include <set>
#include <sstream>

#include "experts/cache/workload/workload_ema.h"
#include "experts/cache/workload/workload_window.h"
#include "measure.h"
#include "recorded_batches.h"

namespace sluice {
namespace {

using namespace experts;
using bench::require;
using Counts = std::vector<std::uint32_t>;
using Flags = std::vector<std::uint8_t>;

// Least recently used, event by event, over a set that starts full: hits are fixed before misses are loaded,
// a victim is never of the event, and the surplus of an event larger than the cache is not kept.
class Lru {
 public:
  explicit Lru(std::size_t experts) : used_(experts, -1) {}
  std::size_t step(const Counts& tokens, Flags& resident) {
    ++now_;
    for (std::size_t e = 0; e < tokens.size(); ++e)
      if (tokens[e] > 0 && resident[e] != 0) used_[e] = now_;
    std::size_t transfers = 0;
    for (std::size_t e = 0; e < tokens.size(); ++e) {
      if (tokens[e] == 0 || resident[e] != 0) continue;
      ++transfers;  // loaded for this step in any case
      std::size_t victim = tokens.size();
      for (std::size_t r = 0; r < tokens.size(); ++r)
        if (resident[r] != 0 && tokens[r] == 0 && (victim == tokens.size() || used_[r] < used_[victim]))
          victim = r;
      if (victim == tokens.size()) continue;
      resident[victim] = 0;
      resident[e] = 1;
      used_[e] = now_;
    }
    return transfers;
  }

 private:
  std::int64_t now_ = -1;
  std::vector<std::int64_t> used_;
};

template <class Cache>
std::size_t swap_step(Cache& cache, const Counts& tokens, Flags& resident) {
  cache.add(tokens);
  const std::span<const Swap> swaps = cache.end_step(resident);
  for (const Swap& swap : swaps) {
    resident[swap.in] = 1;
    resident[swap.out] = 0;
  }
  return swaps.size();
}

struct Result {
  double active = 0, active_hits = 0, tokens = 0, token_hits = 0, transfers = 0, events = 0;
  double a_hit() const { return active_hits / active; }
  double token_hit() const { return token_hits / tokens; }
  double moved() const { return transfers / events; }
};

// `step` decides one step of one layer: (tokens, residents) -> transfers.
template <class MakeCache, class Step>
Result replay(const bench::RecordedBatches& batches, std::size_t steps, std::size_t slots, MakeCache&& make,
              Step&& decide) {
  Result result;
  Counts tokens;
  for (std::size_t layer = 0; layer < batches.layers(); ++layer) {
    std::mt19937_64 random(layer);
    Flags resident(batches.experts());
    std::fill_n(resident.begin(), slots, std::uint8_t{1});
    std::shuffle(resident.begin(), resident.end(), random);
    auto cache = make();
    for (std::size_t step = 0; step < steps; ++step) {
      batches.count(step, layer, tokens);
      for (std::size_t e = 0; e < tokens.size(); ++e) {
        if (tokens[e] == 0) continue;
        result.active += 1;
        result.tokens += tokens[e];
        result.active_hits += resident[e];
        result.token_hits += resident[e] * tokens[e];
      }
      result.transfers += static_cast<double>(decide(cache, tokens, resident));
      result.events += 1;
      require(std::accumulate(resident.begin(), resident.end(), std::size_t{0}) == slots, "slots");
    }
  }
  return result;
}

void compare(const std::string& path, std::size_t& cells, std::size_t& reached) {
  bench::RecordedBatches batches(path);
  const std::uint32_t n = batches.experts();
  fmt::print("{}: {} sequences, {} layers of {} experts\n", path, batches.sequences(), batches.layers(), n);
  fmt::print(
      "   B  slots   steps     A-hit: window    ema    lru   tokens: window    ema    lru   transfers: "
      "window   "
      "ema    lru\n");
  for (const std::size_t batch : {1u, 4u, 12u, 32u, 64u}) {
    const std::size_t steps = batches.batch(batch);
    if (steps == 0) {
      fmt::print("{:4}  fewer sequences than that\n", batch);
      continue;
    }
    for (const std::size_t slots : {n / 4, n / 2}) {
      const auto swaps = [](auto& cache, const Counts& tokens, Flags& resident) {
        return swap_step(cache, tokens, resident);
      };
      const Result window = replay(
          batches, steps, slots, [&] { return WorkloadWindow(n, {}); }, swaps);
      const Result ema = replay(
          batches, steps, slots, [&] { return WorkloadEma(n, {}); }, swaps);
      const Result lru = replay(
          batches, steps, slots, [&] { return Lru(n); },
          [](Lru& cache, const Counts& tokens, Flags& resident) { return cache.step(tokens, resident); });
      const bool better = ema.token_hit() >= window.token_hit() + .02 && ema.moved() <= 1.1 * window.moved();
      if (batch > 1) ++cells, reached += better ? 1 : 0;
      fmt::print(
          "{:4}  {:5}  {:6}            {:5.3f}  {:5.3f}  {:5.3f}           {:5.3f}  {:5.3f}  {:5.3f}         "
          "     "
          "{:5.2f}  {:5.2f}  {:5.2f}{}\n",
          batch, slots, steps, window.a_hit(), ema.a_hit(), lru.a_hit(), window.token_hit(), ema.token_hit(),
          lru.token_hit(), window.moved(), ema.moved(), lru.moved(), batch > 1 && !better ? "  missed" : "");
    }
  }
}

}  // namespace
}  // namespace sluice

int main(int argc, char** argv) try {
  using namespace sluice;  // NOLINT
  bench::check_options(argc, argv, {"traces"});
  std::size_t cells = 0, reached = 0;
  std::istringstream traces(bench::option(argc, argv, "traces", ""));
  for (std::string path; std::getline(traces, path, ',');) compare(path, cells, reached);
  if (cells == 0)
    throw Error(ErrorKind::kUsage, "no recorded batches")
        .in("--traces")
        .expected("files of several sequences");
  fmt::print(
      "{} cells with batches: in {} ema has 2 points more tokens than window, at 1.1 of its transfers at "
      "most\n",
      cells, reached);
  return 0;
} catch (const std::exception& error) {
  fmt::print(stderr, "sluice_bench_workload: {}\n", error.what());
  return 1;
}
