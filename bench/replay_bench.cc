// Accesses per second of a replay, for every cache, and of reading a trace. The trace is generated here
// (Zipf-like, 48 layers of 128 experts, top 8: 3.8 million accesses), or read with `--trace FILE`. `--json
// FILE` also writes the rows there.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <memory>
#include <random>

#include "base/error.h"
#include "experts/registry.h"
#include "lab/replay/replay.h"
#include "measure.h"
#include "report.h"

namespace {

using namespace sluice;  // NOLINT

// Router scores are a fixed skew per layer plus a drifting state, so that steps resemble those before them.
class MadeUpTrace final : public trace::RoutingTrace {
 public:
  MadeUpTrace(std::uint32_t layers, std::uint32_t experts, std::uint32_t top_k, std::uint64_t steps)
      : RoutingTrace("made up"), steps_(steps), state_(std::size_t{layers} * experts), bias_(state_.size()) {
    header_.layers = layers;
    header_.experts = experts;
    header_.top_k = top_k;
    for (std::size_t i = 0; i < bias_.size(); ++i)
      bias_[i] = -0.5f * std::log(static_cast<float>(1 + i % experts));
    begin_ = {0, top_k};
    order_.resize(experts);
  }
  bool next(trace::TraceEvent& event) override {
    if (step_ == steps_) return false;
    const std::uint32_t n = header_.experts, k = header_.top_k;
    float* state = state_.data() + std::size_t{layer_} * n;
    for (std::uint32_t e = 0; e < n; ++e) {
      state[e] = 0.8f * state[e] + (static_cast<float>(random_() % 2001) - 1000) * 1e-3f;
      order_[e] = {-(state[e] + bias_[std::size_t{layer_} * n + (e * 37 + layer_ * 11) % n]),
                   static_cast<std::uint16_t>(e)};
    }
    std::partial_sort(order_.begin(), order_.begin() + k, order_.end());
    choices_.clear();
    for (std::uint32_t i = 0; i < k; ++i) choices_.push_back({.expert = order_[i].second});
    std::ranges::sort(choices_, {}, &experts::Choice::expert);
    event = {.step = step_,
             .layer = layer_,
             .phase = trace::TracePhase::kDecode,
             .tokens = 1,
             .choices = choices_,
             .begin = begin_,
             .logits = {},
             .sequences = {},
             .token_ids = {}};
    if (++layer_ == header_.layers) {
      layer_ = 0;
      ++step_;
    }
    return true;
  }

 private:
  std::mt19937_64 random_{1};
  std::uint64_t steps_, step_ = 0;
  std::uint32_t layer_ = 0;
  std::vector<float> state_, bias_;
  std::vector<std::pair<float, std::uint16_t>> order_;
  std::vector<experts::Choice> choices_;
  std::vector<std::uint32_t> begin_;
};

}  // namespace

int main(int argc, char** argv) try {
  bench::check_options(argc, argv, {"trace", "rounds", "json"});
  const std::string file = bench::option(argc, argv, "trace", "");
  const auto rounds = bench::whole_option(argc, argv, "rounds", 3);
  const std::unique_ptr<trace::RoutingTrace> trace =
      file.empty() ? std::make_unique<MadeUpTrace>(48, 128, 8, 10000) : trace::open_trace(file);
  const lab::Requests requests = lab::read_requests(*trace);
  const trace::TraceHeader& header = trace->header();
  const double accesses = static_cast<double>(requests.list.accesses());
  fmt::print("{}: {} layers of {} experts, top {}; {} steps, {} accesses\n", trace->path(), header.layers,
             header.experts, header.top_k, requests.steps, requests.list.accesses());

  std::vector<bench::Workload> workloads;
  std::vector<double> rates;
  for (const lab::Scope scope : {lab::Scope::kLayer, lab::Scope::kGlobal})
    for (const experts::CachePolicy& policy : experts::cache_policies()) {
      if (policy.pooled || policy.sliced) continue;
      lab::ReplaySettings settings{.cache = std::string(policy.name), .scope = scope};
      settings.capacity =
          std::uint64_t{header.experts} / 4 * (scope == lab::Scope::kGlobal ? header.layers : 1);
      workloads.push_back(
          {fmt::format("{:<14}{}", policy.name, scope == lab::Scope::kLayer ? "layer " : "global"),
           [&, settings, at = rates.size()](std::size_t) {
             const double rate = lab::replay(requests, header.layers, nullptr, settings).total.hit_rate();
             if (rates[at] >= 0 && rates[at] != rate)
               throw Error(ErrorKind::kInvalid, "two replays differ");  // checks that both replays agree
             rates[at] = rate;
           }});
      rates.push_back(-1);
    }
  bench::measure(workloads, rounds);
  fmt::print("\n{:<22} {:>8}  {:>14}  {}\n", "cache, a quarter fits", "hit %", "M accesses/s",
             "median (fastest … slowest)");
  double slowest = 1e300;
  bench::Report report("replay", argc, argv);
  for (std::size_t i = 0; i < workloads.size(); ++i) {
    const double rate = accesses / bench::quantile(workloads[i].seconds, 0.5) / 1e6;
    slowest = std::min(slowest, rate);
    fmt::print("{:<22} {:>8.2f}  {:>14.2f}  {}\n", workloads[i].name, 100 * rates[i], rate,
               bench::times(workloads[i]));
    report.add({.name = fmt::format("replay {}", workloads[i].name),
                .seconds = workloads[i].seconds,
                .figures = {{"M accesses/s", rate}, {"hit %", 100 * rates[i]}},
                .detail = !workloads[i].name.starts_with("lru")});
  }
  report.write();
  fmt::print("\nslowest: {:.2f} M accesses/s\n", slowest);
  return 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "sluice_bench_replay: %s\n", error.what());
  return 1;
}
