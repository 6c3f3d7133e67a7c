#include "commands/hybrid/hybrid_replay.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <iostream>
#include <memory>
#include <optional>
#include <utility>

#include "base/error.h"
#include "base/files/file.h"
#include "base/files/unfinished_file.h"
#include "base/json/json.h"
#include "base/setting.h"
#include "commands/hybrid/hybrid_report.h"
#include "commands/hybrid/hybrid_routing.h"
#include "commands/recorded_prompts.h"
#include "device/emulated/emulated_spec.h"
#include "experts/decision_log.h"
#include "experts/prefetch/prefetch.h"
#include "experts/presets.h"
#include "experts/registry.h"
#include "flags/output_path.h"
#include "flags/pool_slots.h"
#include "flags/room.h"
#include "flags/split_list.h"
#include "streams/played_routing.h"
#include "streams/standard_error.h"
#include "streams/standard_output.h"
#include "trace/choice_counts.h"
#include "trace/routing_trace.h"

namespace sluice::app {
namespace {

// How often each expert is chosen.
std::vector<std::vector<double>> popularity_of(const std::string& path, const trace::TraceHeader& header) {
  const std::unique_ptr<trace::RoutingTrace> trace = trace::open_trace(path);
  if (trace->header().layers != header.layers || trace->header().experts != header.experts)
    throw Error(ErrorKind::kInvalid, "the routing that says which experts are popular is of another model")
        .in(path)
        .expected(fmt::format("{} layers of {} experts", header.layers, header.experts))
        .found(fmt::format("{} of {}", trace->header().layers, trace->header().experts))
        .fix("record it from this model: sluice trace");
  std::vector<std::vector<double>> counts = trace::choice_counts(*trace, interrupted_or_unread);
  tell_played(path, trace->played());
  return counts;
}

// The host's cache of all rows. By bytes where the trace says sizes and nothing counts experts.
std::optional<trace::TraceSizes> set_host(const HybridRequest& request, const trace::TraceHeader& header,
                                          std::vector<HybridRow>& rows) {
  const HybridHostFlags& flags = request.host;
  lab::HybridHost host;
  if (request.slices) host.cache = experts::usual_slice_cache(request.slices->precision.mode);
  if (!flags.cache.empty()) host.cache = flags.cache;
  host.by_layer = flags.scope == "layer";
  if (flags.keep == "packed") host.keep = experts::Part::kSm | experts::Part::kExp;
  if (!flags.pools.empty()) host.pools = parse_pool_slots(flags.pools);
  std::optional<Room> room;
  if (!flags.capacity.empty()) room = parse_room(flags.capacity);
  if (room) host.capacity = room->amount;
  const bool sliced = header.sizes && header.sizes->bytes({0, 0}).msb > 0;
  if (room && room->bytes && sliced && !request.slices)
    throw Error(ErrorKind::kUsage, "the trace is of experts in slices, whose sizes depend on the precision")
        .in(Setting::kCapacity)
        .expected(Setting::kPrecision + " beside it, or a number of experts")
        .found(flags.capacity)
        .fix("give " + Setting::kPrecision + " as the model was run");
  if (room && !room->bytes && request.slices)
    throw Error(ErrorKind::kUsage, "a cache of slices takes its capacity in bytes")
        .in(Setting::kCapacity)
        .expected("a size (4GiB)")
        .found(flags.capacity)
        .fix("give one size");
  const bool by_bytes = header.sizes && (!room || room->bytes) && sliced == request.slices.has_value();
  if (room && room->bytes && !header.sizes)
    throw Error(ErrorKind::kUsage, "the trace does not say how large its experts are")
        .in(Setting::kCapacity)
        .expected("a number of experts")
        .found(flags.capacity)
        .fix("give a number without a unit");
  std::optional<trace::TraceSizes> sizes;
  if (by_bytes) sizes = header.sizes;
  for (HybridRow& row : rows) row.settings.host = host;
  return sizes;
}

// Machines that were measured with slices know what each takes; of others a copy is of both slices.
void set_slices(const HybridRequest& request, const trace::TraceHeader& header,
                std::vector<lab::HybridMachine>& machines) {
  for (lab::HybridMachine& machine : machines) {
    if (!request.slices && !machine.slices.empty())
      throw Error(ErrorKind::kUsage,
                  "the profile is of experts in slices, and a replay of these needs a precision")
          .in(Setting::kPrecision)
          .expected("high, low or dbsc, as the model was run")
          .found("none")
          .fix("give " + Setting::kPrecision + ", or a profile of the model with whole experts");
    if (!request.slices || !header.sizes) continue;
    if (const experts::ExpertBytes bytes = header.sizes->bytes({0, 0}); bytes.msb > 0)
      lab::divide_into_slices(bytes, machine);
    const bool low = request.slices->precision.mode == experts::PrecisionMode::kLow;
    const experts::Parts run =
        low ? experts::Parts(experts::Part::kMsb) : experts::Part::kMsb | experts::Part::kLsb;
    if (!machine.slices.empty() && machine.slices != run && !request.quiet)
      print_warning("{} was measured with {}; a run with it has another {}", machine.name,
                    experts::parts_name(machine.slices), mark(Setting::kPrecision));
  }
}

// A trace does not say by which rule its model limits a token's selection.
void warn_of_own_rules(const HybridRequest& request, const std::vector<HybridRow>& rows) {
  const std::uint64_t differs = std::ranges::max(rows, {}, [](const HybridRow& row) {
                                  return row.result.recorded_differs;
                                }).result.recorded_differs;
  if (differs == 0 || request.quiet) return;
  print_warning(
      "{} recorded choices of a prompt's token in a layer are not the best of their logits: the model "
      "limits its selection by a rule that {} does not say, and a run with {} smoe decides otherwise than "
      "this replay",
      differs, request.trace, flag(Setting::kRouter));
}

// Predictions by the experts in memory hold beside the device that had these.
void set_predicted_beside(const lab::RoutedSteps& steps, HybridRow& row) {
  const lab::HybridSettings& settings = row.settings;
  if (settings.prefetch->predictor != experts::PredictorKind::kPartial) return;
  if (steps.devices !=
      trace::recorded_device(settings.device_cache.name(), settings.placement.name(), settings.slots))
    row.predicted_beside = steps.devices.empty() ? "no device" : steps.devices;
}

void warn_of_other_devices(const HybridRequest& request, const std::vector<HybridRow>& rows) {
  const auto other =
      std::ranges::find_if(rows, [](const HybridRow& row) { return !row.predicted_beside.empty(); });
  if (other == rows.end() || request.quiet) return;
  print_warning(
      "{} was recorded beside {}: what smoe-partial predicted depends on which experts that had, and a run "
      "with the device of these rows would have predicted otherwise",
      request.trace, other->predicted_beside);
}

}  // namespace

void hybrid_replay(const HybridRequest& request, const HybridFlags& flags) {
  std::vector<lab::HybridMachine> machines;
  for (const std::string& name : split_list(request.machine, Setting::kMachine))
    for (lab::HybridMachine& machine : lab::find_hybrid_band(name)) machines.push_back(std::move(machine));
  if (!flags.link.empty())
    for (lab::HybridMachine& machine : machines)
      lab::limit_link(device::parse_link_rate(flags.link, mark(Setting::kLink)), machine);
  if (!request.quiet && request.host.keep != "packed")
    for (const lab::HybridMachine& machine : machines)
      if (machine.packed)
        print_warning(
            "{} was measured with packed experts, which the host of this replay keeps in full; a run "
            "with it decides alike only with {} packed",
            machine.name, mark(Setting::kKeep));
  const std::unique_ptr<trace::RoutingTrace> trace = trace::open_trace(request.trace);
  const trace::TraceHeader header = trace->header();
  check_prefill(request.prefill, header, request.trace);
  set_slices(request, header, machines);
  std::vector<HybridRow> rows = hybrid_rows(request, flags, machines, header);
  check_hybrid_effects(request, flags, rows);
  if (!request.decisions.empty() && rows.size() != 1)
    throw Error(ErrorKind::kUsage, "one log holds the decisions of one row")
        .in(Setting::kDecisions)
        .expected("one machine, batch, size, preset and cache")
        .found(fmt::format("{} rows", rows.size()))
        .fix("name one of each, or leave " + Setting::kDecisions + " out");
  if (!request.decisions.empty()) check_new_file(request.decisions);
  if (!request.ranks_of.empty()) {
    const std::vector<std::vector<double>> popularity = popularity_of(request.ranks_of, header);
    for (HybridRow& row : rows) row.settings.workload.popularity = popularity;
  }
  check_output();
  const std::optional<trace::TraceSizes> sizes = set_host(request, header, rows);
  RoutingOfRows routing(request, header, rows);
  for (HybridRow& row : rows) try {
      row.settings.sizes = sizes ? &*sizes : nullptr;
      row.settings.transitions = routing.transitions();
      const lab::RoutedSteps& steps = routing.of(row);
      set_predicted_beside(steps, row);
      std::optional<OutputFile> log;
      std::optional<UnfinishedFile> unfinished;
      std::function<void(std::string_view)> write;
      if (!request.decisions.empty()) {
        log = OutputFile::create(request.decisions);
        unfinished.emplace(request.decisions);
        write = [&](std::string_view line) { log->write(line); };
      }
      row.result = lab::replay_hybrid(steps, row.settings, write, interrupted_or_unread);
      if (log) {
        log->close();
        unfinished->keep();
      }
    } catch (Error& error) {
      blame_preset(error, row, request, flags);
      throw;
    }
  warn_of_own_rules(request, rows);
  warn_of_other_devices(request, rows);
  const lab::RoutedSteps& recorded = routing.recorded();
  if (!request.json) return print_hybrid(recorded, request, machines, rows);
  Json json = {{"trace", request.trace},
               {"layers", header.layers},
               {"experts", header.experts},
               {"top_k", header.top_k},
               {"prefill", lab::marks_prompts(header) ? Json() : Json(request.prefill.value_or(0))},
               {"prompts", count_prompts(recorded)},
               {"prompt_tokens", recorded.prompt_tokens},
               {"decode_tokens", recorded.decode_tokens},
               {"cut_off", recorded.cut_off}};
  add_played(json, recorded.played);
  json["machines"] = Json::array();
  for (const lab::HybridMachine& machine : machines) json["machines"].push_back(lab::to_json(machine));
  json["results"] = Json::array();
  for (const HybridRow& row : rows) json["results"].push_back(hybrid_json(row));
  std::cout << json.dump(-1, ' ', false, Json::error_handler_t::replace) << '\n';
}

}  // namespace sluice::app
