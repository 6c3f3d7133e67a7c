// `sluice calibrate`: measures the losses of precision and routing for a store in slices, or of the router
// smoe for a store of exact weights, and keeps them in the store.
#include <fmt/format.h>
#include <unistd.h>

#include <charconv>
#include <cmath>
#include <iostream>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/setting.h"
#include "base/text_table.h"
#include "command.h"
#include "commands/calibrate_residual.h"
#include "commands/calibrate_smoe.h"
#include "commands/calibration_steps.h"
#include "eval/measure_calibration.h"
#include "flags/common_flags.h"
#include "flags/engine_flags.h"
#include "flags/model_argument.h"
#include "flags/number_range.h"
#include "flags/output_path.h"
#include "setup/open_model.h"
#include "store/sidecar/sidecar.h"
#include "store/source/open_checkpoint.h"
#include "store/source/store_checkpoint.h"
#include "streams/standard_output.h"
#include "streams/terminal_columns.h"

namespace sluice::app {
namespace {
namespace calibrate_command {

constexpr std::int64_t kResidualTokens = 32768;

struct Options {
  EngineFlags engine;
  std::string reference, file, state;
  std::string output;
  bool residual = false;
  std::optional<std::int64_t> tokens;
  std::int64_t window = 256, prompt = 64;
  std::optional<double> hours;
};

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
                  calibration.text.scored, calibration.text.windows,
                  engine::activations_name(calibration.activations), calibration.perplexity));
  print_output("\n{}", points_table(calibration, columns));
  if (!calibration.both.empty()) print_output("\n{}", sums_table(calibration, columns));
  std::vector<eval::LossDifference> losses = {{calibration.high.loss, calibration.high.error}};
  for (const auto* points : {&calibration.precision, &calibration.routing, &calibration.both})
    for (const engine::CalibrationPoint& point : *points) losses.push_back({point.loss, point.error});
  print_what_is_known(losses, calibration.text.scored);
}

[[noreturn]] void refuse(Setting setting, const char* why, const std::string& expected,
                         const std::string& found, const std::string& fix) {
  throw Error(ErrorKind::kUsage, why).in(setting).expected(expected).found(found).fix(fix);
}

void positive_hours(const std::string& text) {
  double hours = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), hours);
  if (error == std::errc() && end == text.data() + text.size() && hours > 0 && std::isfinite(hours)) return;
  throw Error(ErrorKind::kUsage, "not a time")
      .in(Setting::kHours)
      .expected("hours above 0, as 0.5")
      .found(text);
}

// Checked before the work begins. Whether the store is in slices.
bool check_store(const EngineFlags& flags, const std::string& state) {
  check_model_name(flags.model);
  if (!store::looks_like_store(flags.model))
    throw Error(ErrorKind::kUnsupported, "only a packed store keeps what it loses")
        .in(flags.model)
        .expected("a NAME.sluice store")
        .found("no packed store")
        .fix("pack the model: sluice pack MODEL " + flag(Setting::kOutput) + " NAME.sluice, with " +
             flag(Setting::kSlices) + " 8/4 for two precisions");
  if (!state.empty()) check_output_path(state);
  store::check_takes_sidecars(flags.model);
  return store::open_checkpoint(flags.model)->slices().has_value();
}

void calibrate_slices(const EngineFlags& flags, const std::string& reference_path,
                      const CalibrationRequest& request) {
  const OpenModel open = open_model(flags.model, WithTokenizer::kRequired, flags);
  const OpenModel reference = open_model(reference_path, WithTokenizer::kNo, flags);
  const std::vector<tokenizer::TokenId> tokens = calibration_tokens(request, open, flags);
  auto settings = calibration_settings<eval::CalibrateOptions>(request, open, flags);
  engine::Calibration calibration;
  calibrate_with_progress(request, flags, [&](const OnCalibrated& on_progress) {
    settings.on_progress = on_progress;
    calibration = eval::measure_calibration(*open.checkpoint, open.model, *reference.checkpoint,
                                            reference.model, tokens, settings);
  });
  const Json json = engine::to_json(calibration);
  store::write_sidecar(flags.model, "calibration", "calibration", json);
  if (flags.json)
    std::cout << json.dump() << '\n';
  else
    print_tables(calibration);
}

void calibrate(const Options& options) {
  const EngineFlags& flags = options.engine;
  if (options.residual) {
    const struct {
      Setting setting;
      bool given;
      const char* why;
    } others[] = {{Setting::kReference, !options.reference.empty(), "a residual is measured with one model"},
                  {Setting::kState, !options.state.empty(), "a residual is measured in one go"},
                  {Setting::kHours, options.hours.has_value(), "a residual takes as long as its text"}};
    for (const auto& [setting, given, why] : others)
      if (given) refuse(setting, why, Setting::kResidual + " without it", "both", "leave out one of the two");
    return calibrate_residual(
        flags, {options.file, options.output, options.tokens.value_or(kResidualTokens), options.window});
  }
  if (!options.output.empty())
    refuse(Setting::kOut, "the losses of a store are kept in the store", "no file", options.output,
           "leave " + Setting::kOut + " out");
  const CalibrationRequest request{.file = options.file,
                                   .state = options.state,
                                   .tokens = options.tokens.value_or(kCalibrationTokens),
                                   .window = options.window,
                                   .prompt = options.prompt,
                                   .hours = options.hours};
  const bool sliced = check_store(flags, options.state);
  if (sliced && options.reference.empty())
    refuse(Setting::kReference, "losses are measured against the model that the store was packed from",
           Setting::kReference + " MODEL", "neither it nor " + Setting::kResidual,
           "name that model, or give " + Setting::kResidual + " to measure for prefetching");
  if (!sliced && !options.reference.empty())
    refuse(Setting::kReference,
           "a store without slices loses something by its routing alone, and is its own reference",
           "no reference", options.reference, "leave " + Setting::kReference + " out");
  if (sliced) return calibrate_slices(flags, options.reference, request);
  calibrate_smoe(flags, request);
}

}  // namespace calibrate_command
}  // namespace

void add_calibrate(Command& app) {
  using namespace calibrate_command;
  Command* command = app.add_command(
      "calibrate", "Measure what a store loses by precision and routing, so that " + Setting::kMaxLoss +
                       " can keep to it, or what prefetching is to add to inputs of routers");
  auto options = std::make_shared<Options>();
  EngineFlags& flags = options->engine;
  add_model_argument(
      *command, "STORE", flags.model, flags,
      "Packed NAME.sluice store; keeps the result as a sidecar. With " + Setting::kResidual + " any model");
  take_model_name(*command, options->reference, flags);
  command->add_option(
      Setting::kReference, &options->reference,
      "For a store in slices, the model that it was packed from: a Hugging Face directory, or a store "
      "without slices. A store without slices is its own reference: the router smoe is measured");
  command->add_flag(Setting::kResidual, options->residual,
                    "Instead measures by how much the inputs of neighbouring routers differ, which " +
                        Setting::kPrefetch + " dali-residual follows; the last fifth of the text tests it");
  command->add_option(Setting::kOut, &options->output,
                      "With " + Setting::kResidual + ": file to write; default: the store's sidecar");
  command->add_option(Setting::kFile, &options->file, "Text to measure with; - is standard input")
      ->required();
  command
      ->add_option(Setting::kTokens, &options->tokens,
                   fmt::format("Most tokens of the text that are used, as far as they are needed; default: "
                               "{}, with {} {}",
                               kCalibrationTokens, flag(Setting::kResidual), kResidualTokens))
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
  command
      ->add_option(Setting::kHours, &options->hours,
                   "Ends after this many hours with the errors reached by then; default: as long as it takes")
      ->check(positive_hours);
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
      "The text should be like those that will be written. All that is measured is computed at once, token "
      "by "
      "token, in windows of the text, until the errors are small enough; --state keeps each window.\n"
      "Examples:\n"
      "  sluice calibrate fable.sluice --reference models/fable-moe-18m -f models/fable-moe-18m/eval.txt\n"
      "  sluice calibrate exact.sluice -f models/fable-moe-18m/eval.txt\n"
      "  sluice run fable.sluice --max-loss 1% --memory 30MiB -p \"Once upon a time\"\n"
      "  sluice calibrate fable.sluice --residual -f models/fable-moe-18m/train.txt");
  command->callback([options] { calibrate(*options); });
}

}  // namespace sluice::app
