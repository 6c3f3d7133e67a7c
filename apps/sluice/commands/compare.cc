// `sluice compare`: compares presets on one model, under one budget, with one prompt.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <iostream>
#include <utility>

#include "base/error.h"
#include "base/setting.h"
#include "command.h"
#include "engine/engine.h"
#include "engine/plan/engine_plan.h"
#include "engine/run_report.h"
#include "eval/check_reference.h"
#include "experts/device_presets.h"
#include "experts/registry.h"
#include "flags/engine_flags.h"
#include "flags/model_argument.h"
#include "flags/number_range.h"
#include "flags/routing_flags.h"
#include "flags/split_list.h"
#include "lab/compare.h"
#include "model/architecture.h"
#include "model/config.h"
#include "report/forecast_hint.h"
#include "report/loss_rows.h"
#include "report/progress.h"
#include "report/run_json.h"
#include "report/start_warnings.h"
#include "setup/engine_options.h"
#include "setup/open_model.h"
#include "setup/prompt_flags.h"
#include "store/checkpoint.h"
#include "store/source/store_checkpoint.h"
#include "streams/exit_code.h"
#include "streams/standard_error.h"
#include "streams/standard_output.h"
#include "streams/terminal_columns.h"

namespace sluice::app {
namespace {
namespace compare_command {

constexpr const char* kPresets = "zipmoe,z-C,z-basic-lru,z-deepspeed,z-accelerate";
constexpr const char *kContract = "max-loss", *kReference = "exact";  // contenders that are not presets

struct Options {
  EngineFlags engine;
  PromptFlags prompt;
  std::string whole, reference;
  std::int64_t max_tokens = 64, runs = 3, batch = 1;
};

std::vector<std::string> split_names(const std::string& text) {
  std::vector<std::string> names = split_list(text, Setting::kPreset);
  for (const std::string& name : names) experts::host_preset(name);  // Error(kUsage)
  return names;
}

// Empty: the choice of Setting::kMaxLoss is compared.
std::vector<std::string> preset_names(const EngineFlags& flags) {
  if (!flags.preset.empty()) return split_names(flags.preset);
  if (!flags.slices.max_loss.empty()) return {};
  return split_names(kPresets);
}

// The options of all presets, except the preset. Flags must act with each one of them, except that recorded
// ranks need act with one: the caches of the others ignore them.
engine::EngineOptions options_of(EngineFlags flags, const std::vector<std::string>& names) {
  engine::EngineOptions options, popular;
  std::vector<std::string> without_ranks;
  for (const std::string& name : names) {
    flags.preset = name;
    options = engine_options(flags, UnusedRanks::kLeftOut);
    if (options.popularity_name == flags.ranks_of)
      popular = options;
    else
      without_ranks.push_back(name);
  }
  if (without_ranks.empty()) return options;
  if (without_ranks.size() == names.size()) return engine_options(flags);  // which refuses them
  options.popularity_name = popular.popularity_name;
  options.popularity = popular.popularity;
  if (!flags.quiet)
    print_warning("{} acts on none of {}, whose caches of the device keep no popular experts",
                  flag(Setting::kRanksOf), fmt::join(without_ranks, ", "));
  return options;
}

// Checked before anything runs. Error(kUsage) that names the preset.
void check_goes_with(std::string_view name, const engine::ModelFacts& facts, engine::EngineOptions options) {
  const bool sliced = facts.family == experts::Family::kSliced;
  options.preset = name;
  engine::PolicyPlan policies =
      engine::choose_policies(options, facts.family == experts::Family::kSplit, sliced);
  const bool silent = sliced && policies.precision.mode == experts::PrecisionMode::kFull;
  if (silent) policies.precision.mode = experts::PrecisionMode::kHigh;
  const std::string refusal = fmt::format("preset {} does not go with this model", name);
  if (!sliced && options.preset.host().sliced())
    throw Error(ErrorKind::kUsage, refusal + ": it is for models in slices")
        .in(Setting::kPreset)
        .expected("a store of family sliced")
        .found(fmt::format("{}, which has no slices", facts.path))
        .fix(fmt::format("leave {} out, or pack the model in slices: sluice pack MODEL {} NAME.sluice {} 8/4",
                         name, flag(Setting::kOutput), flag(Setting::kSlices)));
  try {
    engine::check_policies(policies, facts.family);
  } catch (const Error& error) {
    throw Error(ErrorKind::kUsage, fmt::format("{}: {}", refusal, error.what())).in(Setting::kPreset);
  }
  if (silent)
    throw Error(ErrorKind::kUsage,
                refusal + ": its experts are rounded, and nothing says how precise they are to be")
        .in(Setting::kPreset)
        .expected(Setting::kPrecision + " high, low or dbsc beside it")
        .found("none")
        .fix(fmt::format("add {} high, low or dbsc, or leave {} out", mark(Setting::kPrecision), name));
}

OpenModel open_reference(const std::string& path, const OpenModel& open, const EngineFlags& flags) {
  OpenModel reference = open_model(path, WithTokenizer::kNo, flags);
  eval::check_reference(open.model, *reference.checkpoint, reference.model);
  return reference;
}

// The defaults in everything except the machine and the budget.
lab::Contender reference_contender(const OpenModel& reference, const EngineFlags& flags,
                                   std::size_t positions, std::size_t encoder_positions) {
  EngineFlags exact = reference_flags(flags, reference.checkpoint->path());
  exact.capacity = flags.capacity;
  engine::EngineOptions options = engine_options(exact);
  options.positions = positions;
  options.encoder_positions = encoder_positions;
  return {kReference, reference.checkpoint.get(), &reference.model, options};
}

lab::Changes changes_of(const engine::Engine& engine) {
  lab::Changes changes;
  for (const auto& [name, text] : loss_rows(engine.report())) changes.rows.emplace_back(name, text);
  if (!changes.rows.empty()) changes.json = losses_json(engine.report());
  return changes;
}

// In the middle of its runs.
Decoded decoded_of(const lab::Compared& contender) {
  Decoded decoded;
  for (const std::vector<tokenizer::TokenId>& text : contender.texts.back())
    decoded.tokens += text.empty() ? 0 : text.size() - 1;
  decoded.bytes_per_token = contender.of(&lab::RunFigures::bytes_per_token).median;
  decoded.wasted_per_token = contender.of(&lab::RunFigures::wasted_per_token).median;
  decoded.read_s_per_token = contender.of(&lab::RunFigures::read_s_per_token).median;
  decoded.tok_s = contender.of(&lab::RunFigures::tok_s).median;
  decoded.cache = contender.cache;
  decoded.model = contender.path;
  decoded.packed = store::looks_like_store(contender.path);
  return decoded;
}

void add_hints(const lab::Comparison& comparison, Json& json) {
  const auto text = [](const std::string& hint) { return hint.empty() ? Json() : Json(hint); };
  for (std::size_t i = 0; i < comparison.contenders.size(); ++i) {
    const lab::Compared& contender = comparison.contenders[i];
    if (!contender.forecast) continue;
    const Decoded decoded = decoded_of(contender);
    Json& predicted = json.at("presets").at(i).at("predicted");
    predicted["bytes_hint"] = text(bytes_hint(*contender.forecast, decoded));
    predicted["waste_hint"] = text(waste_hint(*contender.forecast, decoded));
    predicted["speed_hint"] = text(speed_hint(*contender.forecast, decoded));
  }
}

void print_hints(const lab::Comparison& comparison) {
  for (const lab::Compared& contender : comparison.contenders) {
    if (!contender.forecast) continue;
    const Decoded decoded = decoded_of(contender);
    const std::string hint = bytes_hint(*contender.forecast, decoded);
    if (hint.empty()) continue;
    print_wrapped(fmt::format("{}: {} a token were predicted, {} were read: {}", contender.preset,
                              format_bytes(static_cast<Bytes>(contender.forecast->expected())),
                              format_bytes(static_cast<Bytes>(decoded.bytes_per_token)), hint));
  }
}

void compare(const Options& options) {
  const EngineFlags& flags = options.engine;
  const std::vector<std::string> names = preset_names(flags);
  lab::CompareSettings settings;
  settings.options = names.empty() ? engine_options(flags) : options_of(flags, names);
  if (!options.reference.empty() && !flags.routing.empty())
    throw Error(ErrorKind::kUsage, "routing that is played says nothing about the model's text")
        .in(Setting::kReference)
        .expected("a router that the model's text depends on")
        .found(Setting::kRouting)
        .fix("leave out " + Setting::kReference + " or " + Setting::kRouting);
  const OpenModel open = open_model(flags.model, WithTokenizer::kIfThere, flags);
  std::optional<OpenModel> whole, reference;
  if (!options.whole.empty()) whole = open_model(options.whole, WithTokenizer::kNo, flags);
  if (!options.reference.empty()) reference = open_reference(options.reference, open, flags);

  std::size_t longest = 0;
  for (std::vector<tokenizer::TokenId>& prompt : prompt_tokens(options.prompt, flags, open)) {
    engine::GenerateRequest request;
    longest = std::max(longest, prompt.size());
    request.prompt = std::move(prompt);
    request.max_tokens = static_cast<std::size_t>(options.max_tokens);
    request.sampler.temperature = 0;
    request.ignore_eos = true;
    settings.requests.insert(settings.requests.end(), static_cast<std::size_t>(options.batch), request);
  }
  const std::size_t positions =
      positions_for(longest, static_cast<std::size_t>(options.max_tokens), flags, open);
  // For a model with an encoder, the prompt is the encoder's input, and the answer stands alone.
  const std::size_t encoder_positions = open.model.config.has_encoder() ? longest : 0;
  settings.options.positions = positions;
  settings.options.encoder_positions = encoder_positions;
  read_script(flags, open.model.config, settings.options);
  settings.options.preset.clear();  // each contender has its own
  settings.runs = static_cast<unsigned>(options.runs);
  settings.tokenizer = open.tokenizer.get();
  std::vector<std::string> warnings;  // each once, of all contenders
  settings.changes = [&](const engine::Engine& engine) {
    for (std::string& warning : start_warnings(engine.report()))
      if (std::ranges::count(warnings, warning) == 0) warnings.push_back(std::move(warning));
    return changes_of(engine);
  };
  settings.interrupted = interrupted_or_unread;

  std::vector<lab::Contender> contenders;
  if (reference) {
    settings.first = lab::First::kReference;
    contenders.push_back(reference_contender(*reference, flags, positions, encoder_positions));
  }
  if (names.empty()) contenders.push_back({kContract, open.checkpoint.get(), &open.model, settings.options});
  for (const std::string& name : names) {
    const OpenModel& source = whole && experts::host_preset(name).whole_experts ? *whole : open;
    check_goes_with(name, engine::facts_of(*source.checkpoint, source.model), settings.options);
    contenders.push_back({name, source.checkpoint.get(), &source.model});
  }
  check_output();
  Progress progress("compare", static_cast<Bytes>(options.runs) * contenders.size(),
                    progress_verbosity(flags.quiet, flags.json), Progress::Unit::kCount);
  settings.on_run = [&](std::size_t done, std::size_t) { progress.update(done); };
  const lab::Comparison result = lab::Comparer().run(contenders, settings);
  progress.end();
  if (!flags.quiet)
    for (const std::string& warning : warnings) write_warning(warning);
  warn_of_full_context(result.reasons, flags, open);
  if (flags.json) {
    Json json = lab::to_json(result);
    add_hints(result, json);
    std::cout << json.dump(-1, ' ', false, Json::error_handler_t::replace) << '\n';
  } else {
    std::cout << lab::table_text(result, terminal_columns(STDOUT_FILENO, kAnyColumns)) << std::flush;
    if (!flags.quiet) print_hints(result);
  }
  if (const auto different = result.different_though_computed_alike()) {
    print_message(
        "sluice: presets that compute alike gave different texts, which must never be: {} in run 1 and "
        "{} in run {} ({})",
        different->from.preset, different->contender.preset, different->run,
        *different->contender.arithmetic);
    throw Exit{kExitFailed};
  }
}

}  // namespace compare_command
}  // namespace

void add_compare(Command& app) {
  using namespace compare_command;
  Command* command =
      app.add_command("compare", "Run presets in turns under one budget and compare their figures");
  auto options = std::make_shared<Options>();
  add_prompt_flags(*command, options->prompt);
  command->add_option(Setting::kPredict, &options->max_tokens, "Tokens to generate, greedily; at least 2")
      ->show_default()
      ->check(whole_number(Setting::kPredict, 2, 1 << 20));
  command->lacks(
      {Setting::kTemperature, Setting::kTopK, Setting::kTopP, Setting::kMinP, Setting::kRepeatPenalty},
      "no sampling: each preset takes the likeliest token, so that texts can be compared");
  command->add_option(Setting::kRuns, &options->runs, "Runs of each preset, in turns")
      ->show_default()
      ->check(whole_number(Setting::kRuns, 1, 1000));
  command
      ->add_option(Setting::kBatch, &options->batch, "Decode every prompt this many times together, 1 to 256")
      ->show_default()
      ->check(whole_number(Setting::kBatch, 1, 256));
  for (std::string* const other : {&options->whole, &options->reference})
    take_model_name(*command, *other, options->engine);
  command->add_option(Setting::kWhole, &options->whole,
                      "The same model stored whole, for presets that read whole experts; default: MODEL");
  command->add_option(
      Setting::kReference, &options->reference,
      "The exact model that MODEL was packed from: runs, too, as \"exact\", and is what lossy "
      "contenders are held against");
  add_engine_flags(*command, options->engine,
                   {.preset = fmt::format("{}, or what {} chooses", fmt::join(split_names(kPresets), ", "),
                                          mark(Setting::kMaxLoss)),
                    .seed = kSeedOfCaches,
                    .devices = true,
                    .plays_routing = true});
  command->footer(
      "Presets are given as a list. Their figures stand side by side where the terminal is wide enough for "
      "the "
      "table, else one below the other. Tokens after an end of text are generated, too. Presets that compute "
      "alike "
      "must give one text, else the command fails; what lossy ones change is reported.\n"
      "Examples:\n"
      "  sluice compare fable.sluice --preset zipmoe,z-basic-lru -p \"Once upon a time\" -n 64 --memory "
      "30MiB\n"
      "  sluice compare qwen.sluice --whole Qwen1.5-MoE-A2.7B --preset z-C+P,z-accelerate -p Hello -n 32 "
      "--memory 8GiB --json\n"
      "  sluice compare sliced.sluice --reference MODEL --preset slicemoe,auto --precision dbsc -p Hello -n "
      "64 "
      "--memory 8GiB");
  command->callback([options] { compare(*options); });
}

}  // namespace sluice::app
