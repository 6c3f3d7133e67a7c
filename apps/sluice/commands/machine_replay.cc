#include "commands/machine_replay.h"

#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>
#include <iostream>
#include <optional>
#include <vector>

#include "base/duration.h"
#include "base/error.h"
#include "base/files/file.h"
#include "base/files/unfinished_file.h"
#include "base/json/json.h"
#include "base/setting.h"
#include "base/text_table.h"
#include "codec/slices/slice_bits.h"
#include "command.h"
#include "commands/recorded_prompts.h"
#include "commands/timed_replay.h"
#include "engine/plan/policy_plan.h"
#include "experts/decision_log.h"
#include "experts/registry.h"
#include "experts/routing/slice_names.h"
#include "flags/number_range.h"
#include "flags/output_path.h"
#include "flags/policy_names.h"
#include "flags/slice_bits_flag.h"
#include "flags/slice_effects.h"
#include "flags/split_list.h"
#include "lab/machine/machine_replay.h"
#include "report/energy_report.h"
#include "streams/played_routing.h"
#include "streams/standard_error.h"
#include "streams/standard_output.h"
#include "streams/terminal_columns.h"

namespace sluice::app {
namespace {
namespace machine_replay_command {

struct Row {
  codec::SliceBits bits;
  lab::MachineReplaySettings settings;
  lab::MachineReplayResult result;
};

lab::SlicedModel read_shape(const std::string& path) {
  namespace fs = std::filesystem;
  std::error_code ignored;  // reading the file says what is wrong
  const std::string file = fs::is_directory(path, ignored) ? path + "/config.json" : path;
  return lab::SlicedModel(path, model::parse_config(read_json_file(file), file));
}

// The model whose experts the trace routes.
lab::SlicedModel model_of(const std::string& shape, const trace::TraceHeader& header) {
  std::error_code ignored;  // what cannot be looked at is no name of a model either
  if (!shape.empty() && std::filesystem::exists(shape, ignored)) return read_shape(shape);
  if (!shape.empty()) return lab::find_published_model(shape);
  for (const lab::SlicedModel& model : lab::published_models())
    if (model.layers() == header.layers && model.experts() == header.experts && model.top_k() == header.top_k)
      return model;
  std::string known;
  for (const lab::SlicedModel& model : lab::published_models()) known += model.name() + ", ";
  throw Error(ErrorKind::kUsage, "no published model has the shape of this trace")
      .in(Setting::kShape)
      .expected(known + "a model's directory, or its config.json")
      .found(
          fmt::format("{} sparse layers of {} experts, top {}", header.layers, header.experts, header.top_k))
      .fix("give " + Setting::kShape + " with the model that was recorded");
}

// All settings except memory and slices, by the rules of the engine.
lab::MachineReplaySettings settings_of(const MachineRequest& request, const MachineFlags& flags,
                                       const SliceFlags& slices) {
  engine::EngineOptions options;
  set_slice_options(slices, options);
  if (!request.preset.empty()) options.preset = experts::find_preset(request.preset);
  if (!options.preset.empty() && !options.preset.host().sliced())
    throw Error(ErrorKind::kUsage, "this preset is for models without slices")
        .in(Setting::kPreset)
        .expected("slicemoe")
        .found(request.preset)
        .fix("name slicemoe, or leave " + Setting::kPreset + " out");
  if (!flags.router.empty()) options.router = find_router_for(false, flags.router);
  options.cache = request.cache;
  if (request.preset.empty() && options.precision == experts::PrecisionMode::kFull)
    options.precision = experts::PrecisionMode::kDbsc;
  const engine::PolicyPlan chosen = engine::choose_policies(options);
  check_effects(slices, options, chosen);
  lab::MachineReplaySettings settings;
  settings.router = chosen.router;
  settings.cache = chosen.cache;
  settings.cache_aware = options.cache_aware;
  settings.smoe = options.smoe;
  settings.precision = chosen.precision;
  settings.constraint = chosen.limits;
  settings.slices = chosen.slices;
  settings.seed = request.seed;
  return settings;
}

Json phase_json(const lab::MachinePhase& phase) {
  const experts::MissAccount& account = phase.account;
  return {{"steps", phase.steps},
          {"tokens", phase.tokens},
          {"requests", phase.requests},
          {"hits", phase.hits},
          {"msb_requests", account.msb_requests},
          {"msb_misses", account.msb_misses},
          {"msb_miss_rate", account.msb_rate()},
          {"lsb_requests", account.lsb_requests},
          {"lsb_misses", account.lsb_misses},
          {"lsb_miss_rate", account.lsb_rate()},
          {"downgrades", account.downgrades},
          {"hbn_miss_rate", account.rate()},
          {"bytes_read", phase.traffic.flash},
          {"bytes_per_token", phase.per_token(phase.traffic.flash)},
          {"joules_per_token", joules_json(phase.energy, static_cast<double>(phase.tokens))},
          {"seconds_per_token",
           {{"rest", phase.per_token(phase.rest_s)},
            {"compute", phase.per_token(phase.compute_s)},
            {"flash_wait", phase.per_token(phase.wait_s)},
            {"total", phase.per_token(phase.seconds)}}}};
}

Json row_json(const Row& row) {
  const lab::MachineReplayResult& result = row.result;
  const lab::MachineReplaySettings& settings = row.settings;
  const experts::RouterRules rules = settings.router->rules;
  return {{"slices", codec::slice_bits_text(row.bits)},
          {"memory", settings.memory},
          {"msb_bytes", settings.bytes.msb},
          {"lsb_bytes", settings.bytes.lsb},
          {"cache", settings.cache.name()},
          {"router", settings.router.name()},
          {"precision", experts::precision_name(settings.precision.mode)},
          {"constraint", experts::constraint_name(settings.constraint.mode)},
          {"miss_rate", keeps_limit(settings.constraint.mode) ? Json(settings.constraint.limit) : Json()},
          {"warmup", experts::initial_slices_name(settings.slices.initial)},
          {"prompts", result.prompts},
          {"hbn_miss_rate", result.accounted.rate()},
          {"replaced", result.replaced},
          {"violations", result.violations},
          {"lambda", rules == experts::RouterRules::kLambda ? Json(result.lambda) : Json()},
          {"alpha", rules == experts::RouterRules::kSmoe ? Json(settings.smoe.alpha) : Json()},
          {"routing",
           {{"tokens", result.changes.tokens},
            {"changed_tokens", result.changes.changed_tokens},
            {"substituted", result.changes.substituted},
            {"mass_lost", result.changes.mass_lost}}},
          {"recorded_differs", result.recorded_differs},
          {"critical", result.critical},
          {"prefill", phase_json(result.prefill)},
          {"decode", phase_json(result.decode)},
          {"decisions", fmt::format("{:016x}", result.decision_hash)}};
}

std::string gigabytes(Bytes bytes) { return fmt::format("{:.3g} GB", static_cast<double>(bytes) * 1e-9); }

void print_table(const lab::RoutedSteps& steps, const lab::SlicedModel& model, const lab::Machine& machine,
                 const MachineRequest& request, const std::vector<Row>& rows) {
  const lab::MachineReplaySettings& settings = rows[0].settings;
  print_wrapped(fmt::format("{}: {} sparse layers of {} experts, top {}, as {}; {}, {} steps", request.trace,
                            model.layers(), model.experts(), model.top_k(), model.name(), prompts_text(steps),
                            rows[0].result.decode.steps));
  print_played(steps.played);
  print_wrapped(fmt::format("machine {}; router {}, precision {}, constraint {}, cache {}{}", machine.name,
                            settings.router.name(), experts::precision_name(settings.precision.mode),
                            experts::constraint_name(settings.constraint.mode), settings.cache.name(),
                            settings.cache->sliced ? fmt::format(", warm-up {}", experts::initial_slices_name(
                                                                                     settings.slices.initial))
                                                   : ""));
  std::vector<std::vector<std::string>> table = {{"slices", "memory", "HBN %", "MSB %", "LSB %", "lost %",
                                                  "mJ/token", "Flash/read/write/compute mJ", "time/token",
                                                  "rest/compute/wait", "a prompt"}};
  const auto two_digits = [](double value) { return fmt::format("{:.2f}", value); };
  for (const Row& row : rows) {
    const lab::MachinePhase& decode = row.result.decode;
    const lab::Energy& energy = decode.energy;
    const auto millijoules = [&](double sum) {
      const double value = 1e3 * decode.per_token(sum);
      return fmt::format("{:.{}f}", value, value < 1 ? 3 : value < 10 ? 2 : 1);
    };
    const auto duration = [&](double sum) { return format_duration(decode.per_token(sum)); };
    const double own = static_cast<double>(row.result.changes.tokens) * model.top_k();
    table.push_back(
        {codec::slice_bits_text(row.bits), gigabytes(row.settings.memory),
         two_digits(100 * row.result.accounted.rate()), two_digits(100 * decode.account.msb_rate()),
         two_digits(100 * decode.account.lsb_rate()),
         two_digits(own > 0 ? 100 * static_cast<double>(row.result.changes.substituted) / own : 0),
         millijoules(energy.total()),
         millijoules(energy.flash) + "/" + millijoules(energy.dram_read) + "/" +
             millijoules(energy.dram_write) + "/" + millijoules(energy.compute),
         duration(decode.seconds),
         duration(decode.rest_s) + "/" + duration(decode.compute_s) + "/" + duration(decode.wait_s),
         row.result.prompts > 0
             ? format_duration(row.result.prefill.seconds / static_cast<double>(row.result.prompts))
             : "-"});
  }
  print_output("\n{}", text_table(table, terminal_columns(STDOUT_FILENO, kAnyColumns), 2));
}

// The decisions of one replay, written like those of a run.
class DecisionFile {
 public:
  DecisionFile(const std::string& path, const lab::MachineReplaySettings& settings, const std::string& played)
      : file_(OutputFile::create(path)), unfinished_(path) {
    file_.write(experts::decision_heading(
        {.cache = std::string(settings.cache.name()),
         .scope = "global",
         .capacity = settings.memory,
         .keep = experts::Part::kMsb | experts::Part::kLsb,
         .seed = settings.seed,
         .slices = experts::SliceSetting{settings.precision, settings.slices, settings.constraint},
         .routing = played}));
  }
  void add(std::uint64_t event, std::uint32_t layer, const experts::EventOutcome& outcome) {
    line_.clear();
    experts::append_decision(line_, event, layer, outcome);
    file_.write(line_);
  }
  void close(std::uint64_t hash) {
    file_.write(experts::decision_ending(hash));
    file_.close();
    unfinished_.keep();
  }

 private:
  OutputFile file_;
  UnfinishedFile unfinished_;
  std::string line_;
};

}  // namespace machine_replay_command
}  // namespace

void add_machine_flags(Command& command, MachineFlags& flags) {
  using namespace machine_replay_command;
  const std::string group = "Slices on a modelled machine";
  command
      .add_option(Setting::kMachine, &flags.machine,
                  "Hardware to replay on: slicemoe (slices; with " + Setting::kMemoryExperts +
                      "), one with a device (those of " + Setting::kDeviceSlots +
                      ", such as dali-3090), or a JSON file")
      ->group(group);
  command
      .add_option(Setting::kSlices, &flags.slices,
                  "Bits of a code, and of its MSB slice: 8/4 (the default), 6/3, 4/2; several with commas "
                  "between them")
      ->group(group);
  std::string names;
  for (const lab::SlicedModel& model : lab::published_models()) names += model.name() + ", ";
  command
      .add_option(Setting::kShape, &flags.shape,
                  "Sizes of the model: " + names +
                      "a model's directory, or its config.json; default: the published one that the trace "
                      "fits")
      ->group(group);
  command
      .add_option(Setting::kRouter, &flags.router,
                  "exact (the default), cache-prior, cumsum, smoe; with a device, and of caches alone (" +
                      Setting::kCache + ", " + Setting::kCapacity +
                      "), exact or smoe; those that change routing need a trace with all logits")
      ->group(group);
  command
      .add_option(
          Setting::kPrefill, &flags.prefill,
          "Tokens of each sequence that are its prompt, where the trace does not say it (.mrt); default: 64, "
          "with a device 0")
      ->check(whole_number(Setting::kPrefill, 0, 1 << 20))
      ->group(group);
}

void machine_replay(const MachineRequest& request, const MachineFlags& flags, const SliceFlags& slices) {
  using namespace machine_replay_command;
  const auto need = [](const std::string& value, Setting setting, const char* expected) {
    if (value.empty())
      throw Error(ErrorKind::kUsage, "a replay on a modelled machine needs " + Setting::kMachine + " and " +
                                         Setting::kMemoryExperts)
          .in(setting)
          .expected(expected)
          .found("none")
          .fix("give it, too");
  };
  need(flags.machine, Setting::kMachine, "slicemoe, or a JSON file");
  need(request.memories, Setting::kMemoryExperts, "a size (1.8GB)");
  const lab::Machine machine = lab::find_machine(flags.machine);
  const lab::MachineReplaySettings common = settings_of(request, flags, slices);
  std::vector<Row> rows;
  for (const std::string& memory : split_list(request.memories, Setting::kMemoryExperts))
    for (const std::string& text :
         split_list(flags.slices.empty() ? "8/4" : flags.slices, Setting::kSlices)) {
      rows.push_back({slice_bits_flag(text), common, {}});
      rows.back().settings.memory = parse_size(memory, Setting::kMemoryExperts);
    }
  if (!request.decisions.empty() && rows.size() != 1)
    throw Error(ErrorKind::kUsage, "one log holds the decisions of one memory and one pair of slices")
        .in(Setting::kDecisions)
        .expected("one replay")
        .found(std::to_string(rows.size()))
        .fix("name one memory and one pair of slices, or leave " + Setting::kDecisions + " out");
  if (!request.decisions.empty()) check_new_file(request.decisions);

  const std::unique_ptr<trace::RoutingTrace> trace = trace::open_trace(request.trace);
  const lab::SlicedModel model = model_of(flags.shape, trace->header());
  check_prefill(flags.prefill, trace->header(), request.trace);
  check_output();
  const auto prefill = static_cast<std::uint32_t>(flags.prefill.value_or(64));
  const lab::RoutedSteps steps = lab::read_routed_steps(*trace, {.prefill = prefill}, interrupted_or_unread);
  if (steps.cut_off && !request.quiet)
    print_warning("{} was cut off; its last step is left out", request.trace);
  for (Row& row : rows) {
    row.settings.bytes = lab::slice_bytes(model.expert_weights(), row.bits);
    std::optional<DecisionFile> log;
    lab::DecisionObserver observer;
    if (!request.decisions.empty())
      observer = [&](std::uint64_t event, std::uint32_t layer, const experts::EventOutcome& outcome) {
        if (!log) log.emplace(request.decisions, row.settings, steps.played);
        log->add(event, layer, outcome);
      };
    row.result = lab::replay_on_machine(steps, model, machine, row.settings, observer, interrupted_or_unread);
    if (log) log->close(row.result.decision_hash);
  }
  if (rows[0].result.decode.steps == 0 && !request.quiet)
    print_warning("all tokens are of prompts, and no step was replayed{}",
                  prefill > 0 ? fmt::format(": {} {} takes them all", flag(Setting::kPrefill), prefill) : "");
  if (rows[0].result.recorded_differs > 0 && !request.quiet)
    print_warning(
        "{} recorded choices of a token in a layer are not the best of their logits: "
        "the model limits its selection, or the run changed its routing",
        rows[0].result.recorded_differs);
  if (!request.json) return print_table(steps, model, machine, request, rows);
  Json json = {{"trace", request.trace},     {"model", model.name()},  {"layers", model.layers()},
               {"experts", model.experts()}, {"top_k", model.top_k()}, {"machine", lab::to_json(machine)},
               {"cut_off", steps.cut_off}};
  add_played(json, steps.played);
  if (rows.size() == 1) {
    json.update(row_json(rows[0]));
  } else {
    json["results"] = Json::array();
    for (const Row& row : rows) json["results"].push_back(row_json(row));
  }
  std::cout << json.dump(-1, ' ', false, Json::error_handler_t::replace) << '\n';
}

}  // namespace sluice::app
