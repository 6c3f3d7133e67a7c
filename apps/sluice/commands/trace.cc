// `sluice trace`: records the routing of a run.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <iostream>
#include <memory>
#include <optional>

#include "base/error.h"
#include "base/files/file.h"
#include "base/setting.h"
#include "base/stop_request.h"
#include "command.h"
#include "engine/decision_recorder.h"
#include "engine/engine.h"
#include "engine/generate/generate.h"
#include "engine/plan/engine_plan.h"
#include "engine/run_report.h"
#include "engine/trace_recorder.h"
#include "engine/watch/statistics.h"
#include "flags/engine_flags.h"
#include "flags/number_range.h"
#include "flags/output_path.h"
#include "flags/routing_flags.h"
#include "flags/sampling_flags.h"
#include "model/architecture.h"
#include "report/device_report.h"
#include "report/memory_report.h"
#include "report/progress.h"
#include "report/start_warnings.h"
#include "setup/engine_options.h"
#include "setup/kept_measurements.h"
#include "setup/open_model.h"
#include "setup/prompt_flags.h"
#include "store/checkpoint.h"
#include "streams/exit_code.h"
#include "streams/interrupt.h"
#include "streams/standard_error.h"
#include "streams/standard_output.h"
#include "streams/terminal_columns.h"
#include "trace/trace_header.h"

namespace sluice::app {
namespace {
namespace trace_command {

struct Options {
  EngineFlags engine;
  PromptFlags prompt;
  std::string out, decisions;
  std::int64_t max_tokens = 128;
  SamplingFlags sampling;
  engine::TraceExtras extras;
  bool append = false, ignore_eos = false;
};

bool was_interrupted(const std::vector<engine::GenerateResult>& results) {
  return std::ranges::any_of(results, [](const engine::GenerateResult& result) {
    return result.reason == engine::StopReason::kInterrupted;
  });
}

// As in `run`: every sequence is in "sequences", a single one in the object itself, too. "timing" of the
// object is that of the whole batch.
void put_sequences(Json& json, const std::vector<engine::GenerateRequest>& requests,
                   const std::vector<engine::GenerateResult>& results) {
  double prefill_s = 0, decode_s = 0;
  for (std::size_t i = 0; i < results.size(); ++i) {
    const engine::GenerateResult& result = results[i];
    prefill_s = std::max(prefill_s, result.prefill_s);
    decode_s = std::max(decode_s, result.decode_s);
    Json sequence = {{"prompt_tokens", requests[i].prompt.size()},
                     {"tokens", result.tokens},
                     {"stop_reason", engine::stop_reason_name(result.reason)},
                     {"timing", {{"prefill_s", result.prefill_s}, {"decode_s", result.decode_s}}}};
    if (results.size() == 1) json.update(sequence);
    json["sequences"].push_back(std::move(sequence));
  }
  json["timing"] = {{"prefill_s", prefill_s}, {"decode_s", decode_s}};
}

void run(const Options& options) {
  const EngineFlags& flags = options.engine;
  engine::EngineOptions engine_settings = engine_options(flags);
  std::error_code ignored;
  const bool resume = options.append && std::filesystem::exists(options.out, ignored);
  if (!resume) check_new_file(options.out, "choose another name, or add to it with " + Setting::kAppend);
  trace::TraceWriter::check(options.out);
  if (!options.decisions.empty()) check_new_file(options.decisions);
  const OpenModel open = open_model(flags.model, WithTokenizer::kIfThere, flags);
  const auto max_tokens = static_cast<std::size_t>(options.max_tokens);
  std::vector<engine::GenerateRequest> requests;
  std::size_t positions = 1;
  for (std::vector<tokenizer::TokenId>& prompt : prompt_tokens(options.prompt, flags, open)) {
    engine::GenerateRequest& request = requests.emplace_back();
    request.prompt = std::move(prompt);
    request.max_tokens = max_tokens;
    // A trace is an experiment: the same command records the same.
    request.sampler =
        sampler_config(options.sampling, open.model.generation, flags.seed.value_or(0) + requests.size() - 1);
    request.ignore_eos = options.ignore_eos;
    request.should_stop = interrupted;
    positions = std::max(positions, positions_for(request.prompt.size(), max_tokens, flags, open));
  }

  if (flags.json || !flags.quiet) check_output();
  engine_settings.positions = positions;
  engine_settings.sequences = requests.size();
  engine_settings.draws = engine::draws(requests);
  read_script(flags, open.model.config, engine_settings);
  engine_settings.recording =
      trace::TraceWriter::kMemory + (options.decisions.empty() ? 0 : engine::DecisionRecorder::kMemory);
  engine::Engine engine(*open.checkpoint, open.model,
                        engine::resolve(engine_settings, *open.checkpoint, open.model),
                        engine::generation_logit_rows(requests.size()));
  keep_profile(flags, engine);
  if (!flags.quiet) write_start_warnings(engine.report());
  const trace::TraceHeader header = engine::trace_header(engine, options.extras);
  trace::TraceWriter writer = resume ? trace::TraceWriter::resume(options.out, header)
                                     : trace::TraceWriter::create(options.out, header);
  const std::uint64_t first_step = writer.steps();
  engine::TraceRecorder recorder(writer);
  engine::ObserverList observers;
  observers.add(&recorder);
  std::optional<engine::DecisionRecorder> decisions;
  std::vector<engine::GenerateResult> results;
  try {
    writer.begin_run(engine::run_record(engine));
    if (!options.decisions.empty()) observers.add(&decisions.emplace(options.decisions, engine));
    engine.observe(&observers);
    {
      Progress progress("trace", requests.size() * max_tokens, progress_verbosity(flags.quiet, flags.json),
                        Progress::Unit::kCount);
      std::size_t tokens = 0;
      for (engine::GenerateRequest& request : requests)
        request.on_text = [&](const std::string&, std::size_t) { progress.update(++tokens); };
      results = engine::generate(engine, open.tokenizer.get(), requests);
    }
    if (was_interrupted(results) && writer.steps() == first_step)
      throw interrupted_error("nothing is recorded").in(options.out);
    writer.close();
    if (decisions) decisions->finish(engine);
  } catch (...) {
    writer.give_up();
    throw;
  }

  warn_of_full_context(engine::stop_reasons(results), flags, open);
  const Bytes size = InputFile::open(options.out).size();
  const engine::ExpertStatistics total = engine.report().statistics.total();
  if (flags.json) {
    Json json = {{"trace", options.out},
                 {"bytes", size},
                 {"version", trace::trace_version(header)},
                 {"steps", writer.steps() - first_step},
                 {"first_step", first_step},
                 {"run", engine::run_record(engine)},
                 {"memory", memory_json(engine.report())},
                 {"experts",
                  {{"accesses", total.accesses},
                   {"hits", total.hits},
                   {"misses", total.misses},
                   {"bytes_read", total.bytes_read}}},
                 {"decisions", fmt::format("{:016x}", engine.report().decision_hash())}};
    if (const std::string played = engine.report().policies.played(); !played.empty())
      json["routing"] = played;
    put_sequences(json, requests, results);
    std::cout << json.dump() << '\n';
  } else if (flags.quiet) {
    if (const std::string played = engine.report().policies.played(); !played.empty())
      print_message("routing: {}", played);  // no output goes without it
  } else {
    std::size_t prompt = 0, generated = 0;
    for (const engine::GenerateRequest& request : requests) prompt += request.prompt.size();
    for (const engine::GenerateResult& result : results) generated += result.tokens.size();
    print_wrapped(fmt::format("{}: {} steps of {} prompt and {} generated tokens, {}{}", options.out,
                              writer.steps() - first_step, prompt, generated, format_bytes(size),
                              requests.size() == 1
                                  ? fmt::format(" ({})", engine::stop_reason_name(results[0].reason))
                                  : fmt::format(", a batch of {}", requests.size())));
    if (const std::string played = engine.report().policies.played(); !played.empty())
      print_wrapped("routing: " + played);
    if (const std::string device = device_text(engine.report()); !device.empty())
      print_wrapped("device: " + device);
  }
  if (was_interrupted(results)) throw Exit{kExitInterrupted};
}

}  // namespace trace_command
}  // namespace

void add_trace(Command& app) {
  using namespace trace_command;
  Command* command = app.add_command("trace", "Record the routing of a run");
  auto options = std::make_shared<Options>();
  add_prompt_flags(*command, options->prompt);
  command->add_option(Setting::kPredict, &options->max_tokens, "Most tokens to generate")
      ->show_default()
      ->check(whole_number(Setting::kPredict, 1, std::uint64_t{1} << 31));
  command
      ->add_option(Setting::kOut, &options->out,
                   "The trace to write; it must not exist, but see " + Setting::kAppend)
      ->required();
  command->add_flag(Setting::kAppend, options->append,
                    "Add this run to the trace if it exists; what an interruption cut off is dropped first");
  command->add_flag(Setting::kAhead, options->extras.ahead,
                    "Also record what the engine predicts about each next layer's router");
  command->add_flag(
      Setting::kGateInputs, options->extras.gate_inputs,
      "Also record the vectors that the routers score: 4 bytes of each hidden float of a token, in "
      "every layer");
  add_sampling_flags(*command, options->sampling, SamplingChoice::kTemperature);
  command->add_flag(Setting::kIgnoreEos, options->ignore_eos, "Go on after an end-of-text token");
  command->add_option(Setting::kDecisions, &options->decisions,
                      "Also write every decision of the caches to this new file");
  add_engine_flags(
      *command, options->engine,
      {.seed = "Same seed, same random choices; default: 0", .devices = true, .plays_routing = true});
  command->footer(
      "Examples:\n"
      "  sluice trace models/fable-moe-18m -p \"Once upon a time\" -n 200 -o fable.trace\n"
      "  sluice trace models/fable-moe-18m -p \"The lighthouse\" -n 200 -o fable.trace --append\n"
      "  sluice simulate --trace fable.trace --cache all --capacity 8");
  command->callback([options] {
    options->engine.records_ahead = options->extras.ahead;
    run(*options);
  });
}

}  // namespace sluice::app
