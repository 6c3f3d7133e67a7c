#include "commands/timed_replay.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <iostream>
#include <optional>

#include "base/compared_bytes.h"
#include "base/duration.h"
#include "base/error.h"
#include "base/files/file.h"
#include "base/json/json.h"
#include "base/setting.h"
#include "base/text_table.h"
#include "command.h"
#include "engine/plan/pool_plan.h"
#include "engine/plan/profile.h"
#include "experts/decision_log.h"
#include "experts/presets.h"
#include "flags/number_range.h"
#include "flags/split_list.h"
#include "lab/machine/pipeline.h"
#include "streams/played_routing.h"
#include "streams/standard_error.h"
#include "streams/standard_output.h"
#include "streams/terminal_columns.h"
#include "trace/rank_windows.h"

namespace sluice::app {
namespace {
namespace timed_replay_command {

struct Row {
  std::string preset, memory;  // as typed
  lab::PipelineSettings settings;
  lab::PipelineResult result;
};

std::string shape_text(std::uint32_t layers, std::uint32_t experts, std::uint32_t k) {
  return fmt::format("{} sparse layers of {} experts, top {}", layers, experts, k);
}

void check_shape(const trace::TraceHeader& header, const engine::ProfiledModel& model,
                 const std::string& path) {
  const std::string expected = shape_text(model.layers, model.experts, model.top_k),
                    found = shape_text(header.layers, header.experts, header.top_k);
  if (expected == found) return;
  throw Error(ErrorKind::kInvalid, "trace and profile are of different models")
      .in(path)
      .expected(expected + ", as the profile")
      .found(found)
      .fix("measure the model that was recorded: sluice profile");
}

lab::PipelineCosts costs_of(const engine::Profile& profile, const TimedFlags& flags) {
  lab::PipelineCosts costs = lab::pipeline_costs(profile);
  if (flags.workers > 0) costs.fetch.workers = static_cast<unsigned>(flags.workers);
  return costs;
}

Json times_json(const lab::PipelineTimes& times) {
  return {{"steps", times.steps},
          {"tokens", times.tokens},
          {"accesses", times.accesses},
          {"hits", times.hits},
          {"bytes_read", times.bytes},
          {"states",
           {{"F", times.found[0]},
            {"C", times.found[1]},
            {"S", times.found[2]},
            {"E", times.found[3]},
            {"M", times.found[4]}}},
          {"time_s", times.time},
          {"rest_s", times.rest},
          {"compute_s", times.compute},
          {"disk_stall_s", times.disk},
          {"decode_stall_s", times.decode},
          {"lower_bound_s", times.least}};
}

Json row_json(const Row& row) {
  const lab::PipelineResult& result = row.result;
  Json json = {{"preset", row.preset},
               {"scope", row.settings.scope == lab::Scope::kLayer ? "layer" : "global"},
               {"memory", row.settings.memory},
               {"tpot_s", result.token_s()},
               {"ttft_s", result.first_token_s()},
               {"tok_s", result.tokens_per_second()},
               {"bytes_per_token", result.bytes_per_token()},
               {"prompts", result.prompts},
               {"fallbacks", result.fallbacks},
               {"prefill", times_json(result.prefill)},
               {"decode", times_json(result.decode)}};
  if (const auto& slots = row.settings.pools) json["slots"] = {slots->f, slots->c, slots->s, slots->e};
  return json;
}

std::string percent(double part, double whole) {
  return whole > 0 ? fmt::format("{:.1f}", 100 * part / whole) : "-";
}

void print_table(const trace::TraceHeader& header, const lab::Requests& requests, const TimedRequest& request,
                 const TimedFlags& flags, const lab::PipelineCosts& costs, const std::vector<Row>& rows) {
  print_wrapped(fmt::format("{}: {}, {} steps", request.trace,
                            shape_text(header.layers, header.experts, header.top_k), requests.steps));
  print_played(requests.played);
  print_wrapped(fmt::format("{}: u {}, v {}, c with its merge {} on {} workers, p {}, rest {}", flags.profile,
                            format_duration(costs.fetch.u), format_duration(costs.fetch.v),
                            format_duration(costs.fetch.c), costs.fetch.workers,
                            format_duration(costs.run.of(1)), format_duration(costs.rest)));
  std::vector<std::vector<std::string>> table = {{"preset", "memory", "slots", "found in F/C/S/E/M %",
                                                  "read/token", "TPOT", "tok/s", "TTFT",
                                                  "disk/decode/compute/rest %"}};
  for (const Row& row : rows) {
    const lab::PipelineResult& result = row.result;
    const lab::PipelineTimes& times = result.decode.steps > 0 ? result.decode : result.prefill;
    const auto accesses = static_cast<double>(times.accesses);
    std::string found, spent;
    for (const std::uint64_t count : times.found)
      found += (found.empty() ? "" : "/") + percent(static_cast<double>(count), accesses);
    for (const double part : {times.disk, times.decode, times.compute, times.rest})
      spent += (spent.empty() ? "" : "/") + percent(part, times.time);
    const bool decodes = result.decode.steps > 0;
    table.push_back({row.preset, row.memory,
                     row.settings.pools ? experts::slots_text(*row.settings.pools) : "-", found,
                     decodes ? format_bytes(static_cast<Bytes>(result.bytes_per_token())) : "-",
                     decodes ? format_duration(result.token_s()) : "-",
                     decodes ? fmt::format("{:.2f}", result.tokens_per_second()) : "-",
                     result.prompts > 0 ? format_duration(result.first_token_s()) : "-", spent});
  }
  print_output("\n{}", text_table(table, terminal_columns(STDOUT_FILENO, kAnyColumns), 2));
}

// Memory in which no part of an expert fits is a mistake of the user.
void check_memory(Bytes memory, const engine::ProfiledModel& model) {
  Bytes least = model.full;
  for (const Bytes part : {model.sm, model.exp})
    if (part > 0) least = std::min(least, part);
  if (memory < least) {
    const ComparedBytes sizes = compared_bytes(least, memory);
    throw Error(ErrorKind::kBudget, "no part of any expert can stay in this memory")
        .in(Setting::kMemoryExperts)
        .expected("at least " + sizes.expected)
        .found(sizes.found)
        .fix("give more");
  }
}

}  // namespace timed_replay_command
}  // namespace

void add_timed_flags(Command& command, TimedFlags& flags) {
  using namespace timed_replay_command;
  const std::string group = "Timed replay";
  std::string names;
  for (const experts::Preset& preset : experts::presets())
    if (!preset.sliced()) names += std::string(preset.name) + ", ";
  command
      .add_option(Setting::kProfile, &flags.profile,
                  "Costs of `sluice profile " + Setting::kOutput + " FILE.json`: replay on a virtual clock")
      ->group(group);
  command.add_option(Setting::kPreset, &flags.presets, names + "several with commas between them, or all")
      ->group(group);
  command
      .add_option(Setting::kMemoryExperts, &flags.memories,
                  "For the resident experts of all layers (4GiB); several with commas between them")
      ->group(group);
  command.add_option(Setting::kWorkers, &flags.workers, "Decode workers; default: the profile's threads")
      ->group(group)
      ->check(whole_number(Setting::kWorkers, 1, 1024));
  command
      .add_option(Setting::kRanksOf, &flags.ranks_of,
                  "Recorded routing that pools are planned with; default: the profile's, else assumed")
      ->group(group);
}

void timed_replay(const TimedRequest& request, const TimedFlags& flags) {
  using namespace timed_replay_command;
  const auto need = [](const std::string& value, Setting setting, const char* expected) {
    if (value.empty())
      throw Error(ErrorKind::kUsage, "a timed replay needs " + Setting::kProfile + ", " + Setting::kPreset +
                                         " and " + Setting::kMemoryExperts)
          .in(setting)
          .expected(expected)
          .found("none")
          .fix("give it, too");
  };
  need(flags.profile, Setting::kProfile, "a file of `sluice profile`");
  need(flags.presets, Setting::kPreset, "presets (auto,z-C)");
  need(flags.memories, Setting::kMemoryExperts, "a size (8GiB)");
  std::vector<std::string> presets;
  if (flags.presets == "all") {
    for (const experts::Preset& preset : experts::presets())
      if (!preset.usual && !preset.sliced())  // auto is one of the others, depending on the store
        presets.emplace_back(preset.name);
  } else {
    presets = split_list(flags.presets, Setting::kPreset);
  }
  std::vector<Row> rows;
  for (const std::string& memory : split_list(flags.memories, Setting::kMemoryExperts))
    for (const std::string& preset : presets) {
      Row row;
      row.preset = preset;
      row.memory = memory;
      row.settings.preset = &experts::find_preset(preset);
      row.settings.memory = parse_size(memory, Setting::kMemoryExperts);
      row.settings.scope = request.scope == "layer" ? lab::Scope::kLayer : lab::Scope::kGlobal;
      row.settings.rules = request.rules;
      row.settings.seed = request.seed;
      rows.push_back(std::move(row));
    }

  engine::Profile profile = engine::read_profile(flags.profile);
  if (flags.workers > 0) profile.machine.threads = static_cast<std::uint32_t>(flags.workers);
  const lab::PipelineCosts costs = costs_of(profile, flags);
  for (const Row& row : rows) check_memory(row.settings.memory, profile.model);
  if (!flags.ranks_of.empty()) {
    const std::unique_ptr<trace::RoutingTrace> recorded = trace::open_trace(flags.ranks_of);
    check_shape(recorded->header(), profile.model, flags.ranks_of);
    profile.ranks = trace::recorded_ranks(*recorded, interrupted_or_unread);
    tell_played(flags.ranks_of, recorded->played());
  } else if (!profile.ranks.empty()) {
    tell_played(flags.profile, profile.played);
  }
  const std::unique_ptr<trace::RoutingTrace> trace = trace::open_trace(request.trace);
  const trace::TraceHeader& header = trace->header();
  check_shape(header, profile.model, request.trace);
  check_output();
  const lab::Requests requests = lab::read_requests(*trace, interrupted_or_unread);
  if (requests.cut_off && !request.quiet)
    print_warning("{} was cut off; its last record is left out", request.trace);

  for (Row& row : rows) {
    const experts::Preset& preset = *row.settings.preset;
    row.settings.all_decode = header.format == "mrt";
    if (preset.sharing != experts::PoolSharing::kNone)
      row.settings.pools = engine::plan_pools(profile, {.shares = engine::shares_of(preset),
                                                        .memory = row.settings.memory,
                                                        .ranks = profile.ranks})
                               .chosen.slots;
    row.result = lab::run_pipeline(requests, header.layers, header.experts, costs, row.settings,
                                   interrupted_or_unread);
  }
  if (!request.json) return print_table(header, requests, request, flags, costs, rows);
  Json json = {{"trace", request.trace},         {"profile", flags.profile},   {"layers", header.layers},
               {"experts", header.experts},      {"top_k", header.top_k},      {"steps", requests.steps},
               {"workers", costs.fetch.workers}, {"cut_off", requests.cut_off}};
  add_played(json, requests.played);
  if (rows.size() == 1) {
    json.update(row_json(rows[0]));
  } else {
    json["results"] = Json::array();
    for (const Row& row : rows) json["results"].push_back(row_json(row));
  }
  std::cout << json.dump(-1, ' ', false, Json::error_handler_t::replace) << '\n';
}

}  // namespace sluice::app
