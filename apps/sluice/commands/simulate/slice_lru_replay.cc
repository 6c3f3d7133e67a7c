#include "commands/simulate/slice_lru_replay.h"

#include <fmt/format.h>

#include <functional>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/error.h"
#include "base/files/file.h"
#include "base/files/unfinished_file.h"
#include "base/json/json.h"
#include "base/setting.h"
#include "commands/simulate/cache_rows.h"
#include "commands/simulate/routing_report.h"
#include "engine/plan/policy_plan.h"
#include "flags/output_path.h"
#include "flags/slice_effects.h"
#include "lab/replay/slice_replay.h"
#include "streams/played_routing.h"
#include "streams/standard_error.h"
#include "streams/standard_output.h"
#include "streams/terminal_columns.h"

namespace sluice::app {
namespace {

lab::SliceReplaySettings slice_lru_settings(const SimulateOptions& options) {
  lab::ReplaySettings capacity;
  set_capacity(options.capacities, capacity);
  if (capacity.unit != lab::CapacityUnit::kBytes)
    throw Error(ErrorKind::kUsage, "a cache of slices takes its capacity in bytes")
        .in(Setting::kCapacity)
        .expected("a size (4GiB)")
        .found(options.capacities)
        .fix("give one size");
  engine::EngineOptions chosen;
  set_slice_options(options.slices, chosen);
  if (chosen.precision == experts::PrecisionMode::kFull)
    throw Error(ErrorKind::kUsage, "a replay of slices needs a precision")
        .in(Setting::kPrecision)
        .expected("high, low or dbsc")
        .found("none")
        .fix("give " + Setting::kPrecision + " dbsc, or as the model was run");
  // Where the recorded choices stay, a limit serves only the account.
  const lab::ReplayRouter router = cache_router(options);
  chosen.router = router.router;
  chosen.cache = "slice-lru";
  const engine::PolicyPlan plan = engine::choose_policies(chosen);
  check_effects(options.slices, chosen, plan);
  lab::SliceReplaySettings settings;
  settings.scope = options.scope == "layer" ? lab::Scope::kLayer : lab::Scope::kGlobal;
  settings.capacity = capacity.capacity;
  settings.seed = options.seed();
  settings.slices = {plan.precision, plan.slices, plan.limits};
  settings.router = router;
  return settings;
}

Json slice_lru_json(const std::string& trace, const lab::SliceReplaySettings& settings,
                    const lab::SliceReplayResult& result) {
  const experts::MissAccount& slices = result.slices;
  Json json = {{"trace", trace},
               {"cache", "slice-lru"},
               {"scope", settings.scope == lab::Scope::kLayer ? "layer" : "global"},
               {"capacity", settings.capacity},
               {"accesses", result.total.accesses},
               {"hits", result.total.hits},
               {"misses", result.total.misses()},
               {"decode_hit_rate", result.decode.hit_rate()},
               {"bytes_read", result.bytes_read},
               {"slices",
                {{"hbn_miss_rate", result.account.rate()},
                 {"msb_misses", slices.msb_misses},
                 {"msb_hits", slices.msb_requests - slices.msb_misses},
                 {"lsb_misses", slices.lsb_misses},
                 {"lsb_hits", slices.lsb_requests - slices.lsb_misses - slices.downgrades},
                 {"downgrades", slices.downgrades}}},
               {"decisions", fmt::format("{:016x}", result.decision_hash)}};
  if (settings.router.routes()) json["routing"] = smoe_routing_json(settings.router, result.routing);
  add_played(json, result.played);
  return json;
}

void print_slice_lru(const std::string& trace, const lab::SliceReplaySettings& settings,
                     const lab::SliceReplayResult& result) {
  const experts::MissAccount& slices = result.slices;
  print_wrapped(fmt::format("{}: slice-lru of {}, one cache {}", trace, format_bytes(settings.capacity),
                            settings.scope == lab::Scope::kLayer ? "a layer" : "for all layers"));
  print_played(result.played);
  print_wrapped(fmt::format("{} accesses, {} hits ({:.3f} % of decode steps'), {} read",
                            result.total.accesses, result.total.hits, 100 * result.decode.hit_rate(),
                            format_bytes(result.bytes_read)));
  print_wrapped(fmt::format(
      "decode steps: {} of {} MSB slices missing, {} of {} LSB slices, {} downgrades; {:.2f} % of bytes",
      slices.msb_misses, slices.msb_requests, slices.lsb_misses, slices.lsb_requests, slices.downgrades,
      100 * result.account.rate()));
  if (settings.router.routes()) print_wrapped(smoe_loss_text(settings.router, result.routing));
}

}  // namespace

void slice_lru_replay(const SimulateOptions& options) {
  const lab::SliceReplaySettings settings = slice_lru_settings(options);
  if (!options.decisions.empty()) check_new_file(options.decisions);

  const std::unique_ptr<trace::RoutingTrace> trace = trace::open_trace(options.trace);
  std::optional<OutputFile> log;
  std::optional<UnfinishedFile> unfinished;
  check_output();
  const lab::SliceReplayResult result = lab::replay_slices(
      *trace, settings,
      options.decisions.empty() ? std::function<void(std::string_view)>()
                                : [&](std::string_view line) {
                                    if (!log) {
                                      log = OutputFile::create(options.decisions);
                                      unfinished.emplace(options.decisions);
                                    }
                                    log->write(line);
                                  },
      interrupted_or_unread);
  if (log) {
    log->close();
    unfinished->keep();
  }
  if (result.cut_off && !options.common.quiet)
    print_warning("{} was cut off; its last record is left out", options.trace);
  warn_of_own_rule(options, result.routing.recorded_differs);
  if (!options.common.json) return print_slice_lru(options.trace, settings, result);
  std::cout
      << slice_lru_json(options.trace, settings, result).dump(-1, ' ', false, Json::error_handler_t::replace)
      << '\n';
}

}  // namespace sluice::app
