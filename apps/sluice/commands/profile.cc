// `sluice profile`: measures the costs of reading, decoding and computing experts on this machine, and on a
// device beside it.
#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>
#include <iostream>

#include "base/duration.h"
#include "base/error.h"
#include "base/files/file.h"
#include "base/setting.h"
#include "base/wrapped_text.h"
#include "command.h"
#include "commands/recorded_routing.h"
#include "engine/engine.h"
#include "engine/forward/common/measure_profile.h"
#include "flags/engine_flags.h"
#include "flags/number_range.h"
#include "flags/output_path.h"
#include "model/architecture.h"
#include "report/device_costs.h"
#include "report/start_warnings.h"
#include "setup/engine_options.h"
#include "setup/open_model.h"
#include "store/checkpoint.h"
#include "store/sidecar/sidecar.h"
#include "streams/interrupt.h"
#include "streams/standard_output.h"
#include "streams/terminal_columns.h"

namespace sluice::app {
namespace {
namespace profile_command {

struct Options {
  EngineFlags engine;
  std::string output, trace;
  std::int64_t repeats = 9;
};

std::string table(const engine::Profile& profile, std::size_t columns) {
  std::string text = wrapped_text(fmt::format("{} on {} ({}), {} threads, {}", profile.model.architecture,
                                              profile.machine.cpu, profile.machine.isa,
                                              profile.machine.threads, profile.machine.io),
                                  columns) +
                     '\n';
  const auto row = [&](const char* name, const engine::Measured& time, const std::string& what,
                       double bytes) {
    const std::string rate =
        bytes > 0 && time.median > 0 ? fmt::format(", {:.2f} GB/s", bytes / time.median / 1e9) : "";
    text += report_row(
        name,
        fmt::format("{} ± {}: {}{}", format_duration(time.median), format_duration(time.spread), what, rate),
        columns);
  };
  const double tensors = std::max(1u, profile.model.tensors),
               chunks = tensors * std::max(1u, profile.model.chunks);
  const bool split = profile.model.chunks > 0;
  const bool in_slices = profile.device && profile.device->in_slices();  // its host is not measured alone
  if (!in_slices)
    row("u", profile.u, split ? "read one tensor's sign+mantissa plane" : "read one tensor",
        static_cast<double>(split ? profile.model.sm : profile.model.full) / tensors);
  if (split) {
    row("v", profile.v, "read one exponent chunk", static_cast<double>(profile.model.exp) / chunks);
    row("c", profile.c, "decode one exponent chunk, one thread of all",
        static_cast<double>(profile.model.sm) / chunks);
    row("merge", profile.merge, "merge one tensor, one thread of all",
        static_cast<double>(profile.model.full) / tensors);
  }
  for (const auto& [tokens, time] : profile.p_of_tokens)
    row("p", time, fmt::format("compute one expert, {} token{}", tokens, tokens == 1 ? "" : "s"),
        static_cast<double>(profile.model.full));
  if (profile.p_packed)
    row("p", *profile.p_packed, "compute one expert as it is stored, 1 token",
        static_cast<double>(profile.model.sm + profile.model.exp));
  row("rest", profile.rest, "one decode step without its routed experts", 0);
  if (profile.device)
    for (const ReportRow& one : device_cost_rows(*profile.device))
      text += report_row(one.name, one.text, columns);
  if (!profile.ranks.empty()) {
    std::string used;
    for (std::size_t r = 0; r < profile.ranks.size(); r = r == 0 ? 1 : 2 * r)
      used += fmt::format("{}rank {}: {:.1f} %", r == 0 ? "" : ", ", r + 1, 100 * profile.ranks[r]);
    text += report_row("used", used, columns);
  }
  return text;
}

// The first sidecar also makes the directory.
void check_sidecar_place(const std::string& store) {
  const std::string directory = store + "/sidecar";
  const bool there = std::filesystem::exists(directory);
  check_output_path((there ? directory : store) + "/profile.json");
}

void profile(const Options& options) {
  const EngineFlags& flags = options.engine;
  engine::EngineOptions settings = engine_options(flags);
  if (!options.output.empty()) check_output_path(options.output);
  const OpenModel open = open_model(flags.model, WithTokenizer::kNo, flags);
  if (open.checkpoint->slices() && !settings.has_device())
    throw Error(ErrorKind::kUnsupported,
                "costs of experts in slices are measured beside a device: the host alone plans nothing with "
                "them")
        .in(flags.model)
        .expected(Setting::kDevice + ", a model directory, or a store of family raw or split")
        .found("family sliced, and no device")
        .fix("add " + Setting::kDevice +
             " cuda or emulated, or measure the model that the store was packed from");
  if (options.output.empty() && !open.checkpoint->packed())
    throw Error(ErrorKind::kUsage, "a directory has no place for its profile")
        .in(Setting::kOutput)
        .expected(Setting::kOutput + " FILE.json, or a packed store, which keeps it as a sidecar")
        .found("neither")
        .fix("give " + Setting::kOutput + " FILE.json");
  if (options.output.empty()) check_sidecar_place(flags.model);
  if (flags.json || !flags.quiet) check_output();
  RecordedRouting routing;
  if (!options.trace.empty()) routing = read_routing(options.trace, open.model.config);
  settings.positions = 16;
  if (settings.has_device()) settings.device_slots = 0;  // nothing stays there
  engine::Engine engine(*open.checkpoint, open.model,
                        engine::resolve(settings, *open.checkpoint, open.model));
  write_start_warnings(engine.report());
  check_identity(routing, options.trace, engine);
  engine::Profile measured = engine.measure({.repeats = static_cast<std::size_t>(options.repeats),
                                             .seed = flags.seed.value_or(0),
                                             .stop = interrupted});
  measured.ranks = routing.ranks;
  measured.played = routing.played;
  const Json json = engine::to_json(measured);
  if (options.output.empty())
    store::write_sidecar(flags.model, "profile", "profile", json);
  else
    write_file_atomically(options.output, json.dump(1) + "\n");
  if (flags.json) {
    std::cout << json.dump() << '\n';
  } else if (!flags.quiet) {
    std::cout << table(measured, terminal_columns(STDOUT_FILENO));
  }
}

}  // namespace profile_command
}  // namespace

void add_profile(Command& app) {
  using namespace profile_command;
  Command* command =
      app.add_command("profile", "Measure what reading, decoding and computing experts costs here");
  auto options = std::make_shared<Options>();
  command->add_option(Setting::kOut, &options->output,
                      "File to write; a store without it keeps the profile as a sidecar");
  command->add_option(Setting::kRepeats, &options->repeats, "Runs of which the median is taken")
      ->show_default()
      ->check(whole_number(Setting::kRepeats, 1, 1000));
  command->add_option(
      Setting::kTrace, &options->trace,
      "Also note how often the r-th hottest expert of a layer was used in this recorded routing");
  add_engine_flags(
      *command, options->engine,
      {.seed = "Which experts are measured; default: 0", .policies = PolicyFlags::kNone, .devices = true});
  add_precision_flag(
      *command, options->engine.slices,
      "For experts in slices beside a device: they are measured as runs of this precision compute them: "
      "high and dbsc with both slices, low with one; default: both");
  command->footer(
      "Examples:\n  sluice profile qwen.sluice -o here.json\n  sluice profile qwen.sluice --trace "
      "qwen.trace\n  sluice profile qwen.sluice --device emulated:link=2GB/s -o here.json");
  command->callback([options] { profile(*options); });
}

}  // namespace sluice::app
