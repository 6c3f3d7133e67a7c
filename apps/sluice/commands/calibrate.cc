// `sluice calibrate`: measures the losses of precision and routing for a store in slices, and keeps them in
// the store.
#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>
#include <iostream>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/setting.h"
#include "base/text_table.h"
#include "command.h"
#include "commands/calibrate_residual.h"
#include "eval/measure_calibration.h"
#include "flags/common_flags.h"
#include "flags/engine_flags.h"
#include "flags/number_range.h"
#include "flags/output_path.h"
#include "model/architecture.h"
#include "model/config.h"
#include "report/progress.h"
#include "setup/engine_options.h"
#include "setup/open_model.h"
#include "setup/open_tokenizer.h"
#include "setup/token_input.h"
#include "store/sidecar/sidecar.h"
#include "store/source/store_checkpoint.h"
#include "streams/interrupt.h"
#include "streams/standard_output.h"
#include "streams/terminal_columns.h"

namespace sluice::app {
namespace {

constexpr std::int64_t kTokens = 8192, kResidualTokens = 32768;

struct Options {
  EngineFlags engine;
  std::string reference, file, state;
  std::string output;
  bool residual = false;
  std::optional<std::int64_t> tokens;
  std::int64_t window = 256, prompt = 64;
};

// With fewer tokens, contracts on held-out text came out a fifth above their limits
// (docs/quality-contract.md).
constexpr std::uint64_t kFewScored = 3000;

std::string percent(double share) { return fmt::format("{:.3f} %", 100 * share); }

std::string amounts_text(const engine::CalibrationPoint& point) {
  return fmt::format("both {:.2f}, {:.3f}", point.theta, point.ceiling);
}

std::string points_table(const engine::Calibration& calibration, std::size_t columns) {
  std::vector<std::vector<std::string>> rows = {
      {"", "amount", "perplexity", "loss", "± error", "bytes a token"}};
  const auto row = [&](const std::string& name, const engine::CalibrationPoint& point) {
    const eval::PerplexityLoss loss = eval::of_perplexity({point.loss, point.error});
    rows.push_back(
        {name, fmt::format("{:.4f}", point.amount), fmt::format("{:.4f}", point.perplexity),
         percent(loss.share), percent(loss.error),
         point.bytes_per_token > 0 ? format_bytes(static_cast<Bytes>(point.bytes_per_token)) : ""});
  };
  row("high (against exact)", calibration.high);
  for (const engine::CalibrationPoint& point : calibration.precision)
    row(point.precision == experts::PrecisionMode::kDbsc ? fmt::format("dbsc, theta {:.2f}", point.theta)
                                                         : "low",
        point);
  for (const engine::CalibrationPoint& point : calibration.routing)
    row(fmt::format("mass {:.3f}, {:.0f} %", point.ceiling, 100 * point.cache), point);
  for (const engine::CalibrationPoint& point : calibration.both) row(amounts_text(point), point);
  return text_table(rows, columns);
}

// What the two losses that are measured together would be, if they simply added up.
std::string sums_table(const engine::Calibration& calibration, std::size_t columns) {
  const experts::LossModel model = calibration.model();
  std::vector<std::vector<std::string>> rows = {{"", "low share", "sum of the two"}};
  for (const engine::CalibrationPoint& point : calibration.both) {
    const double sum = model.precision.at(point.low) + model.routing.at(point.amount);
    rows.push_back({amounts_text(point), fmt::format("{:.4f}", point.low),
                    percent(eval::of_perplexity({sum, 0}).share)});
  }
  return text_table(rows, columns);
}

void print_tables(const engine::Calibration& calibration) {
  const std::size_t columns = terminal_columns(STDOUT_FILENO, kAnyColumns);
  print_wrapped(
      fmt::format("{} tokens scored in {} windows, activations {}; the reference has perplexity {:.4f}",
                  calibration.scored, calibration.windows, engine::activations_name(calibration.activations),
                  calibration.perplexity));
  print_output("\n{}", points_table(calibration, columns));
  if (!calibration.both.empty()) print_output("\n{}", sums_table(calibration, columns));
  if (calibration.scored < kFewScored) {
    print_output("\n");
    print_wrapped(fmt::format(
        "few tokens: contracts may be missed by a fifth or more; give more text, and {} {} or more",
        flag(Setting::kTokens), kTokens));
  }
}

[[noreturn]] void refuse(Setting setting, const char* why, const std::string& expected,
                         const std::string& found, const std::string& fix) {
  throw Error(ErrorKind::kUsage, why).in(setting).expected(expected).found(found).fix(fix);
}

void calibrate(const Options& options) {
  const EngineFlags& flags = options.engine;
  if (options.residual) {
    const std::pair<Setting, const std::string&> others[] = {{Setting::kReference, options.reference},
                                                             {Setting::kState, options.state}};
    for (const auto& [setting, value] : others)
      if (!value.empty())
        refuse(setting, "a residual is measured with one model, and at once",
               Setting::kResidual + " without it", "both", "leave out one of the two");
    return calibrate_residual(
        flags, {options.file, options.output, options.tokens.value_or(kResidualTokens), options.window});
  }
  if (options.reference.empty())
    refuse(Setting::kReference, "losses are measured against the model that the store was packed from",
           Setting::kReference + " MODEL", "neither it nor " + Setting::kResidual,
           "name that model, or give " + Setting::kResidual + " to measure for prefetching");
  if (!options.output.empty())
    refuse(Setting::kOut, "the losses of a store are kept in the store", "no file", options.output,
           "leave " + Setting::kOut + " out");
  if (!store::looks_like_store(flags.model))
    throw Error(ErrorKind::kUnsupported, "only a store in slices has losses to calibrate")
        .in(flags.model)
        .expected("a store of family sliced")
        .found("no packed store")
        .fix("pack the model in slices: sluice pack MODEL " + flag(Setting::kOutput) + " NAME.sluice " +
             flag(Setting::kSlices) + " 8/4");
  if (!options.state.empty()) check_output_path(options.state);
  store::check_takes_sidecars(flags.model);
  const OpenModel open = open_model(flags.model, WithTokenizer::kRequired, flags);
  const OpenModel reference = open_model(options.reference, WithTokenizer::kNo, flags);
  const std::string text = read_input_text(options.file);
  std::vector<tokenizer::TokenId> tokens =
      encode_file(*open.tokenizer, text, options.file, tokenizer::AddSpecial::kNo, flags);
  tokens.resize(std::min(tokens.size(), static_cast<std::size_t>(options.tokens.value_or(kTokens))));

  eval::CalibrateOptions settings;
  settings.windows = {static_cast<std::size_t>(options.window), static_cast<std::size_t>(options.prompt)};
  if (settings.windows.window < settings.windows.prompt + 2)
    throw Error(ErrorKind::kUsage, "a window leaves no token to score behind its prompt")
        .in(Setting::kCtx)
        .expected(fmt::format("at least {}", settings.windows.prompt + 2))
        .found(std::to_string(settings.windows.window))
        .fix("raise " + Setting::kCtx + ", or lower " + Setting::kPrefill);
  if (settings.windows.window > open.model.config.max_positions)
    throw Error(ErrorKind::kUsage, "windows are longer than the model's context")
        .in(Setting::kCtx)
        .expected(fmt::format("at most {}", open.model.config.max_positions))
        .found(std::to_string(settings.windows.window))
        .fix("give a smaller " + Setting::kCtx);
  check_output();
  settings.engine = engine_options(flags);
  settings.engine.positions = settings.windows.window;
  settings.state = options.state;
  engine::Calibration calibration;
  {
    std::optional<Progress> progress;
    settings.on_progress = [&](std::size_t done, std::size_t all) {
      if (!progress)
        progress.emplace("calibrate: tokens", all, progress_verbosity(flags.quiet, flags.json),
                         Progress::Unit::kCount);
      progress->update(done);
      return !interrupted();
    };
    try {
      calibration = eval::measure_calibration(*open.checkpoint, open.model, *reference.checkpoint,
                                              reference.model, tokens, settings);
    } catch (Error& error) {
      if (error.kind() != ErrorKind::kInterrupted) throw;
      if (options.state.empty()) throw error.fix("with " + Setting::kState + " FILE it could go on there");
      const bool kept = std::filesystem::exists(options.state);  // not before the first way is finished
      throw error.fix(kept ? "what is finished is in " + options.state + ": the same command goes on there"
                           : "nothing was finished, so that nothing is kept");
    }
  }
  const Json json = engine::to_json(calibration);
  store::write_sidecar(flags.model, "calibration", "calibration", json);
  if (flags.json)
    std::cout << json.dump() << '\n';
  else
    print_tables(calibration);
}

}  // namespace

void add_calibrate(Command& app) {
  Command* command =
      app.add_command("calibrate", "Measure what a store in slices loses, so that " + Setting::kMaxLoss +
                                       " can keep to it, or what prefetching is to add to inputs of routers");
  auto options = std::make_shared<Options>();
  EngineFlags& flags = options->engine;
  command
      ->add_argument("STORE", &flags.model,
                     "Packed NAME.sluice store in slices; keeps the result as a sidecar. With " +
                         Setting::kResidual + " any model")
      ->required();
  command->add_option(
      Setting::kReference, &options->reference,
      "The model that it was packed from: a Hugging Face directory, or a store without slices");
  command->add_flag(Setting::kResidual, options->residual,
                    "Instead measures by how much the inputs of neighbouring routers differ, which " +
                        Setting::kPrefetch + " dali-residual follows; the last fifth of the text tests it");
  command->add_option(Setting::kOut, &options->output,
                      "With " + Setting::kResidual + ": file to write; default: the store's sidecar");
  command->add_option(Setting::kFile, &options->file, "Text to measure with; - is standard input")
      ->required();
  command
      ->add_option(Setting::kTokens, &options->tokens,
                   fmt::format("Most tokens of the text that are used; default: {}, with {} {}", kTokens,
                               flag(Setting::kResidual), kResidualTokens))
      ->check(whole_number(Setting::kTokens, 2, std::uint64_t{1} << 31));
  command->add_option(Setting::kCtx, &options->window, "Tokens of a window")
      ->show_default()
      ->check(whole_number(Setting::kCtx, 3, 1 << 24));
  command
      ->add_option(Setting::kPrefill, &options->prompt,
                   "Tokens of a window that are a prompt; what is behind it is scored")
      ->show_default()
      ->check(whole_number(Setting::kPrefill, 1, 1 << 24));
  command->add_option(
      Setting::kState, &options->state,
      "File that keeps what is finished: the same command goes on there after an interruption");
  add_common_flags(
      *command, flags,
      {.memory = "Budget for everything (8GiB, 500MB); default: what is free, less max(512 MiB, 5 %)",
       .threads = "Compute threads; 0: all usable CPUs",
       .isa = "Instruction set: auto, scalar, avx2, avx512, avx512_vbmi2, avx512_bf16, amx, neon",
       .io = "How weights are read: direct, buffered, mmap",
       .json = "Print one JSON object and nothing else",
       .quiet = "No progress on standard error"});
  add_activations_flag(*command, flags.slices);
  command->footer(
      "The text should be like those that will be written. It is computed some twenty-five times, token by "
      "token: --state keeps each of them.\n"
      "Examples:\n"
      "  sluice calibrate fable.sluice --reference models/fable-moe-18m -f models/fable-moe-18m/eval.txt\n"
      "  sluice run fable.sluice --max-loss 1% --memory 30MiB -p \"Once upon a time\"\n"
      "  sluice calibrate fable.sluice --residual -f models/fable-moe-18m/train.txt");
  command->callback([options] { calibrate(*options); });
}

}  // namespace sluice::app
