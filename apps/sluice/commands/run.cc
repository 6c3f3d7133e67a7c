// `sluice run`: generates text inside a memory budget.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <iostream>
#include <optional>
#include <random>

#include "base/error.h"
#include "base/files/file.h"
#include "base/setting.h"
#include "base/shown_text.h"
#include "base/stop_request.h"
#include "base/stopwatch.h"
#include "base/wrapped_text.h"
#include "command.h"
#include "commands/chat/chat_prompt.h"
#include "engine/decision_recorder.h"
#include "engine/draft/drafting.h"
#include "engine/engine.h"
#include "engine/generate/generate.h"
#include "engine/plan/memory_plan.h"
#include "engine/plan/pool_plan.h"
#include "engine/run_report.h"
#include "engine/watch/statistics.h"
#include "experts/routing/miss_constraint.h"
#include "flags/draft_flag.h"
#include "flags/engine_flags.h"
#include "flags/number_range.h"
#include "flags/output_path.h"
#include "flags/routing_flags.h"
#include "flags/sampling_flags.h"
#include "model/architecture.h"
#include "report/device_report.h"
#include "report/draft_report.h"
#include "report/energy_report.h"
#include "report/fitted_line.h"
#include "report/live_text.h"
#include "report/memory_report.h"
#include "report/residency_picture.h"
#include "report/run_json.h"
#include "report/run_report.h"
#include "report/start_warnings.h"
#include "setup/engine_options.h"
#include "setup/kept_measurements.h"
#include "setup/open_model.h"
#include "setup/open_tokenizer.h"
#include "setup/prompt_flags.h"
#include "streams/exit_code.h"
#include "streams/standard_error.h"
#include "streams/standard_output.h"
#include "streams/terminal_columns.h"

namespace sluice::app {
namespace {
namespace run_command {

using Clock = std::chrono::steady_clock;
const Clock::time_point kProcessStart = Clock::now();

double since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

struct Options {
  EngineFlags engine;
  PromptFlags prompt;
  std::string out, decisions, chat_template, machine = "slicemoe";
  std::int64_t max_tokens = 128;
  SamplingFlags sampling;
  DraftFlag draft;
  std::vector<std::string> stop;
  bool chat = false, ignore_eos = false, show_experts = false;
};

std::uint64_t random_seed() {
  return (std::uint64_t{std::random_device{}()} << 32 | std::random_device{}()) >> 11;
}

// Figures of the run, as many as fit, above those of the memory.
std::string status_line(const engine::RunReport& run, std::size_t tokens, Clock::time_point first_token,
                        std::size_t columns) {
  const engine::DiskReport disk = run.disk();
  const engine::ExpertStatistics total = run.statistics.total();
  const double seconds = since(first_token);
  // For slices: the rate that the limit is about.
  const experts::MissConstraint* const constraint = run.checkpoint.slices() ? run.constraint() : nullptr;
  const std::string missed = constraint == nullptr || constraint->account().requested <= 0
                                 ? ""
                                 : fmt::format("missed {:.1f} %", 100 * constraint->account().rate());
  const std::string figures = fitted_line(
      {{fmt::format("{:.1f} tok/s",
                    tokens > 1 && seconds > 0 ? static_cast<double>(tokens - 1) / seconds : 0.0),
        0},
       {fmt::format("hits {:.0f} %", total.accesses > 0 ? 100.0 * static_cast<double>(total.hits) /
                                                              static_cast<double>(total.accesses)
                                                        : 0.0),
        2},
       {missed, 3},
       {fmt::format("disk {:.2f} GB/s",
                    disk.seconds > 0 ? static_cast<double>(disk.bytes_read) / 1e9 / disk.seconds : 0.0),
        4},
       {fmt::format("{} of {}", format_bytes(run.accountant.used()), format_bytes(run.memory.budget)), 1},
       {device_figures(run), 2}},
      " | ", columns);
  return figures + "\n" + memory_line_short(run, columns);
}

Json sequence_json(const engine::GenerateRequest& request, const engine::GenerateResult& result) {
  return {{"tokens", result.tokens},
          {"text", result.text ? Json(*result.text) : Json(nullptr)},
          {"prompt_tokens", request.prompt},
          {"stop_reason", engine::stop_reason_name(result.reason)}};
}

// What the experts of its steps cost it (docs/batching.md, "What is counted").
Json share_json(const engine::RequestStatistics& statistics) {
  return {{"accesses", statistics.accesses},
          {"demand", statistics.demand},
          {"hits", statistics.hits},
          {"misses", statistics.misses},
          {"bytes_read", statistics.bytes_read}};
}

// Every sequence is in "sequences". A single one is in the object itself, too, which most readers want.
Json result_json(engine::Engine& engine, const std::vector<engine::GenerateRequest>& requests,
                 const std::vector<engine::GenerateResult>& results, const RunTimes& times,
                 const EnergyReport& energy) {
  const engine::RunReport run = engine.report();
  Json json;
  double prompt = 0, decoded = 0, prefill_s = 0, decode_s = 0;
  for (std::size_t i = 0; i < results.size(); ++i) {
    if (!results[i].tokens.empty()) prompt += static_cast<double>(requests[i].prompt.size());
    if (!results[i].tokens.empty()) decoded += static_cast<double>(results[i].tokens.size() - 1);
    prefill_s = std::max(prefill_s, results[i].prefill_s);
    decode_s = std::max(decode_s, results[i].decode_s);
    json["sequences"].push_back(sequence_json(requests[i], results[i]));
    json["sequences"].back()["prefill_s"] = results[i].prefill_s;  // since the batch began
    json["sequences"].back()["experts"] = share_json(results[i].statistics);
  }
  if (results.size() == 1) json.update(sequence_json(requests[0], results[0]));
  json["seed"] = requests[0].sampler.seed;
  json["timing"] = {{"load_s", times.load_s}, {"prefill_s", prefill_s}, {"decode_s", decode_s}};
  // Without tokens there is no speed.
  if (prompt > 0 && prefill_s > 0) json["timing"]["prefill_tok_s"] = prompt / prefill_s;
  if (decoded > 0 && decode_s > 0) json["timing"]["decode_tok_s"] = decoded / decode_s;
  if (times.first_token_s) json["timing"]["first_token_s"] = *times.first_token_s;
  json["start"] = start_json(run, times);
  json["memory"] = memory_json(run);
  json["io"] = io_json(run);
  json["drafts"] = drafts_json(run.drafting);
  json["experts"] = experts_json(run);
  add_device(json, run);
  if (Json model = energy.json(); !model.is_null()) json["energy_model"] = std::move(model);
  if (run.statistics.decode.tokens > 0 && !run.checkpoint.slices())
    json["predicted"] = forecast_json(run, results);
  if (run.pool_plan) json["plan"] = engine::to_json(*run.pool_plan);
  json["preset"] = run.policies.preset_name();
  if (const std::string played = run.policies.played(); !played.empty()) json["routing"] = played;
  json["decisions"] = fmt::format("{:016x}", run.decision_hash());
  json["isa"] = isa_name(run.isa);
  json["kv"] = dtype_name(run.plan.cache_dtype);
  json["threads"] = run.threads;
  json["chunk"] = run.chunk;
  return json;
}

// Hugging Face also accepts such ids, and never meets them.
void warn_of_eos(const std::string& path, const model::ModelConfig& config) {
  for (const tokenizer::TokenId token : config.eos)
    if (static_cast<std::size_t>(token) >= config.vocab)
      print_warning(
          "{}: end-of-text token {} is beyond the vocabulary of {} (eos_token_id of "
          "generation_config.json, else of config.json): it never comes, and ends nothing",
          shown_text(path), token, config.vocab);
}

// Warns of settings that the publisher asks for and Hugging Face obeys, and that have no effect here.
void warn_of_ignored(const model::GenerationConfig& generation, bool sampling) {
  std::vector<std::string> fields = generation.ignored;
  if (sampling)
    fields.insert(fields.end(), generation.ignored_in_sampling.begin(), generation.ignored_in_sampling.end());
  if (!fields.empty())
    print_warning("generation_config.json: without effect here: {}", fmt::join(fields, ", "));
}

// Limits of drawing, given by flag, of a run that draws nothing.
void warn_of_limits(const SamplingFlags& flags, const engine::SamplerConfig& sampler) {
  if (sampler.temperature > 0) return;
  std::vector<std::string> given;
  if (flags.top_k) given.push_back(flag(Setting::kTopK));
  if (flags.top_p) given.push_back(flag(Setting::kTopP));
  if (flags.min_p) given.push_back(flag(Setting::kMinP));
  if (!given.empty())
    print_warning("{}: without effect, because at temperature 0 the likeliest token is taken; add {}",
                  fmt::join(given, ", "), flag(Setting::kTemperature));
}

// Calls `work`. Where it ends because nobody reads standard output any more, warns of the files that were
// to be written once the text was complete.
template <class Work>
void unless_unread(const Options& options, Work work) try {
  work();
} catch (const Exit&) {
  std::vector<std::string> files;
  for (const std::string& file : {options.out, options.decisions})
    if (!file.empty()) files.push_back(shown_text(file));
  if (!files.empty())
    print_warning("{}: not written, since nobody reads standard output any more", fmt::join(files, ", "));
  throw;
}

// The model's chat template, if prompts are what a user says. Error(kUsage) for token ids.
std::optional<ChatPrompt> chat_of(const Options& options, const OpenModel& open) {
  if (!options.chat) return std::nullopt;
  if (!options.prompt.tokens.empty())
    throw Error(ErrorKind::kUsage, "token ids are taken verbatim")
        .in(Setting::kChat)
        .expected("text, by " + Setting::kPrompt + " or " + Setting::kFile)
        .found(Setting::kTokens)
        .fix("leave " + Setting::kChat + " out, or give the text");
  return std::make_optional<ChatPrompt>(open, options.chat_template);
}

void run(const Options& options) {
  const EngineFlags& flags = options.engine;
  const Clock::time_point load_start = Clock::now();
  engine::EngineOptions settings = engine_options(flags);
  lab::find_machine(options.machine);
  if (!options.out.empty()) check_output_path(options.out);
  if (!options.decisions.empty()) check_new_file(options.decisions);
  const std::size_t max_tokens = static_cast<std::size_t>(options.max_tokens);
  const engine::DraftKind draft = options.draft.kind();
  const OpenModel open =
      open_model(flags.model, options.chat ? WithTokenizer::kRequired : WithTokenizer::kIfThere, flags);
  const std::optional<ChatPrompt> chat = chat_of(options, open);
  const auto as_message = [&](const std::string& text) {
    return chat->render(Json::array({{{"role", "user"}, {"content", text}}}), Think::kAuto).tokens;
  };

  RunTimes times;
  times.open_s = open.open_s;
  times.tokenizer_s = open.tokenizer_s;
  Stopwatch prompt_watch;
  std::vector<engine::GenerateRequest> requests;
  std::size_t positions = 1, longest_prompt = 0;
  const std::uint64_t first_seed = flags.seed ? *flags.seed : random_seed();
  for (std::vector<tokenizer::TokenId>& prompt :
       prompt_tokens(options.prompt, flags, open, chat ? EncodePrompt(as_message) : EncodePrompt())) {
    engine::GenerateRequest& request = requests.emplace_back();
    request.prompt = std::move(prompt);
    request.max_tokens = max_tokens;
    request.sampler =
        sampler_config(options.sampling, open.model.generation, first_seed + requests.size() - 1);
    request.ignore_eos = options.ignore_eos;
    request.stop = options.stop;
    if (chat) {
      request.stop.insert(request.stop.end(), chat->stop().begin(), chat->stop().end());
      request.ends = chat->ends();
      if (chat->marks_are_special()) request.special = tokenizer::ShowSpecial::kYes;
    }
    request.should_stop = interrupted_or_unread;
    positions = std::max(positions, positions_for(request.prompt.size(), max_tokens, flags, open));
    longest_prompt = std::max(longest_prompt, request.prompt.size());
  }
  times.prompt_s = prompt_watch.seconds();
  const bool batch = requests.size() > 1;
  if (batch && !options.out.empty())
    throw Error(ErrorKind::kUsage, "a batch has several texts")
        .in(Setting::kOutput)
        .expected("one prompt")
        .found(std::to_string(requests.size()))
        .fix("use " + Setting::kJson + " for a batch");
  const bool encoder =
      open.model.config.has_encoder();  // then the prompt is its input, and the answer stands alone

  unless_unread(options, check_output);
  settings.positions = positions;
  settings.encoder_positions = encoder ? longest_prompt : 0;
  settings.sequences = requests.size();
  settings.draft = draft;
  settings.draws = engine::draws(requests);
  read_script(flags, open.model.config, settings);
  if (!options.decisions.empty()) settings.recording = engine::DecisionRecorder::kMemory;
  engine::Engine engine(*open.checkpoint, open.model, engine::resolve(settings, *open.checkpoint, open.model),
                        engine::generation_logit_rows(decoded_tokens(requests.size(), draft)));
  keep_profile(flags, engine);
  if (!flags.quiet) write_start_warnings(engine.report());
  if (!flags.quiet) warn_of_ignored(open.model.generation, requests[0].sampler.temperature > 0);
  if (!flags.quiet) warn_of_limits(options.sampling, requests[0].sampler);
  if (!flags.quiet && !options.draft.name.empty() && !engine.report().drafting.why_off().empty())
    print_warning("{}: off {}", flag(Setting::kDraft), engine.report().drafting.why_off());
  if (!flags.quiet && !options.ignore_eos) warn_of_eos(flags.model, open.model.config);
  std::optional<engine::DecisionRecorder> decisions;
  const EnergyReport energy(engine, options.machine, flags.json);
  engine::ObserverList observers;
  if (energy.observer() != nullptr) observers.add(energy.observer());
  if (!options.decisions.empty()) observers.add(&decisions.emplace(options.decisions, engine));
  if (!observers.empty()) engine.observe(&observers);
  times.load_s = since(load_start);

  const bool terminal = !flags.json && stdout_moves_cursor();
  Clock::time_point first_token;
  std::size_t tokens = 0;
  LiveText live(terminal, colour_allowed(), [&](std::size_t columns) {
    return status_line(engine.report(), tokens, first_token, columns);
  });
  for (engine::GenerateRequest& request : requests) {
    request.on_text = [&](const std::string& text, std::size_t) {
      if (tokens++ == 0) {
        first_token = Clock::now();
        times.first_token_s = since(kProcessStart);
      }
      if (!flags.json) live.write(batch ? "" : text);
    };
  }
  const bool echoed = terminal && open.tokenizer != nullptr && !encoder && !batch && !chat;
  std::vector<engine::GenerateResult> results;
  unless_unread(options, [&] {
    if (echoed)
      live.write(open.tokenizer->decode(requests[0].prompt,
                                        tokenizer::ShowSpecial::kNo));  // as the text goes on from it
    results = engine::generate(engine, open.tokenizer.get(), requests);
    live.finish();
  });
  if (decisions) decisions->finish(engine);
  if (!options.out.empty()) {
    if (results[0].reason == engine::StopReason::kInterrupted)
      print_warning("{}", interrupted_error("the answer is not written").in(options.out).what());
    else
      write_file_atomically(options.out, results[0].text.value_or(""));
  }

  if (flags.json) {
    std::cout << result_json(engine, requests, results, times, energy)
                     .dump(-1, ' ', false, Json::error_handler_t::replace)
              << '\n';
  } else {
    for (std::size_t i = 0; i < results.size(); ++i) {
      if (batch) std::cout << fmt::format("[{}] {}", i + 1, output_text(results[i].text.value_or("")));
      if (!results[i].text) std::cout << fmt::format("{}", fmt::join(results[i].tokens, ","));
      const bool nothing = results[i].tokens.empty() && !batch && !echoed;
      if (!nothing || results[i].reason != engine::StopReason::kInterrupted) std::cout << '\n';
    }
    std::cout.flush();
    const std::size_t columns = terminal_columns(STDERR_FILENO);
    if (!flags.quiet) {
      write_report('\n' + run_table(engine.report(), requests, results, times, columns));
      if (const std::string text = drafts_text(engine.report().drafting); !text.empty())
        write_report(report_row("drafts", text, columns));
      if (requests[0].sampler.temperature > 0 && !flags.seed)
        write_report(report_row("seed", std::to_string(requests[0].sampler.seed), columns));
    } else if (const std::string played = engine.report().policies.played(); !played.empty()) {
      print_message("routing: {}", played);  // no output goes without it
    }
    if (options.show_experts)
      write_report('\n' + residency_picture(engine.report(), terminal && colour_allowed(), columns));
  }
  warn_of_full_context(engine::stop_reasons(results), flags, open);
  for (const engine::GenerateResult& result : results)
    if (result.reason == engine::StopReason::kInterrupted) throw Exit{kExitInterrupted};
}

}  // namespace run_command
}  // namespace

void add_run(Command& app) {
  using namespace run_command;
  Command* command = app.add_command("run", "Generate text inside a memory budget");
  auto options = std::make_shared<Options>();
  add_prompt_flags(*command, options->prompt);
  const std::string chat = "Chat template";
  command
      ->add_flag(Setting::kChat, options->chat,
                 "The prompt is what a user says: put it into the model's chat template")
      ->group(chat);
  command
      ->add_option(Setting::kChatTemplate, &options->chat_template,
                   "... into this one: a file, or chatml; see sluice template")
      ->group(chat);
  command->add_option(Setting::kPredict, &options->max_tokens, "Most tokens to generate")
      ->show_default()
      ->check(whole_number(Setting::kPredict, 0, std::uint64_t{1} << 31))
      ->group(kSamplingGroup);
  add_sampling_flags(*command, options->sampling, SamplingChoice::kAll);
  command->add_option(Setting::kStop, &options->stop, "End before this text; may be given several times")
      ->group(kSamplingGroup);
  command->add_flag(Setting::kIgnoreEos, options->ignore_eos, "Go on after an end-of-text token")
      ->group(kSamplingGroup);
  add_draft_flag(*command, options->draft);
  const std::string output = "Output";
  command->add_option(Setting::kOut, &options->out, "Also write the text to this file, once it is complete")
      ->group(output);
  command
      ->add_option(Setting::kDecisions, &options->decisions,
                   "Write every decision of the caches to this new file")
      ->group(output);
  command
      ->add_option(Setting::kMachine, &options->machine,
                   "Modelled hardware of energy_model (" + Setting::kJson +
                       "): slicemoe, or a JSON file (docs/replay.md)")
      ->show_default()
      ->group("Energy");
  command
      ->add_flag(Setting::kShowExperts, options->show_experts, "Draw which experts are in memory at the end")
      ->group(output);
  add_engine_flags(*command, options->engine, {.devices = true, .finds_device = true, .plays_routing = true});
  command->footer(
      "Examples:\n"
      "  sluice run models/fable-moe-18m -p \"Once upon a time\" -n 60 --memory 40MiB\n"
      "  sluice run qwen.sluice -f question.txt -n 200 --memory 8GiB --temp 0.7 --seed 1 --json\n"
      "  # after sluice calibrate:\n"
      "  sluice run sliced.sluice -p \"Once upon a time\" --memory 8GiB --max-loss 1%");
  command->callback([options] {
    options->chat |= !options->chat_template.empty();
    run(*options);
  });
}

}  // namespace sluice::app
