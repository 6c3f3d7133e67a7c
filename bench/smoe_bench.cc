// sluice_bench_smoe [--rounds N] [--tokens N] [--json FILE]
// What deciding costs with all parts of SMoE: router, cache, prefetch queue and balancer, for each model that
// the paper names, over synthetic routing of its shape, on one core. Beside it the time of the decode step
// that is decided, by the modelled clock of the paper's machines: deciding is to take at most 2 % of it. Also
// counted are the softmax and the replay's own counts, so that the true share is smaller. Checks that every
// repetition decides alike, and that something was decided.
#include <fmt/format.h>

#include "base/error.h"
#include "experts/device_presets.h"
#include "measure.h"
#include "report.h"
#include "reproduce/preset_settings.h"
#include "reproduce/smoe/smoe_replays.h"

namespace sluice {
namespace {

using namespace reproduce;
using bench::require;

// Decode steps alone: prompts are one step of many tokens.
lab::RoutedSteps decode_steps(const SmoeSetting& setting, std::uint32_t batch, std::uint32_t tokens) {
  lab::RoutedSteps steps = smoe_steps(setting, SmoeRoutingKind::kFitted,
                                      {.batch = batch, .prompt = 8, .output = tokens, .sequences = batch}, 1);
  std::erase_if(steps.steps, [](const lab::RoutedStep& step) { return step.prompt; });
  return steps;
}

lab::HybridSettings settings_at(const SmoePlace& place, const lab::RoutedSteps& steps) {
  lab::HybridSettings settings =
      settings_of("smoe", place.slots, experts::usual_prefetch_size(steps.experts));
  settings.smoe.alpha = place.setting->alpha;
  settings.costs = place.machine->costs;
  return settings;
}

void bench_place(const SmoePlace& place, std::uint32_t batch, std::uint32_t tokens, std::size_t rounds,
                 bench::Report& report) {
  const lab::RoutedSteps steps = decode_steps(*place.setting, batch, tokens);
  const lab::HybridSettings settings = settings_at(place, steps);
  const lab::HybridResult first = lab::replay_hybrid(steps, settings);
  require(first.decode.steps == tokens, "steps");
  require(first.decode_changes.substituted > 0, "nothing was replaced");
  std::vector<bench::Workload> work = {
      {place.label, [&](std::size_t) {
         require(lab::replay_hybrid(steps, settings).decision_hash == first.decision_hash, "decisions");
       }}};
  bench::measure(work, rounds);
  const auto count = static_cast<double>(first.decode.steps);
  for (double& seconds : work[0].seconds) seconds /= count;
  const double decided = bench::quantile(work[0].seconds, .5), step = first.decode.seconds / count;
  fmt::print(
      "  {:22} B {:2}: {:4} layers of {:2}, top {}: {:8.1f} µs a step, which takes {:7.2f} ms: {:.2f} %\n",
      place.label, batch, steps.layers, steps.experts, steps.top_k, 1e6 * decided, 1e3 * step,
      100 * decided / step);
  report.add({.name = fmt::format("deciding of a step, {}, B = {}", place.label, batch),
              .seconds = work[0].seconds,
              .figures = {{"share of the step", decided / step}, {"step, s", step}}});
}

}  // namespace
}  // namespace sluice

int main(int argc, char** argv) try {
  using namespace sluice;
  bench::check_options(argc, argv, {"rounds", "tokens", "json"});
  const std::size_t rounds = bench::whole_option(argc, argv, "rounds", 20);
  const auto tokens = static_cast<std::uint32_t>(bench::whole_option(argc, argv, "tokens", 64));
  bench::Report report("smoe", argc, argv);
  fmt::print("deciding with all parts of SMoE, median of {} replays of {} decode steps\n", rounds, tokens);
  for (const reproduce::SmoePlace& place : reproduce::smoe_places())
    for (const std::uint32_t batch : {1u, 3u, 16u}) bench_place(place, batch, tokens, rounds, report);
  report.write();
} catch (const sluice::Error& error) {
  fmt::print(stderr, "sluice_bench_smoe: {}\n", error.what());
  return 1;
}
