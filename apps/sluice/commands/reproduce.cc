// `sluice reproduce`: reproduces the tables of a paper on this machine.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <iostream>
#include <optional>
#include <utility>

#include "base/error.h"
#include "base/files/file.h"
#include "base/files/temporary_directory.h"
#include "base/setting.h"
#include "base/stop_request.h"
#include "base/wrapped_text.h"
#include "command.h"
#include "eval/tasks/choice_tasks.h"
#include "eval/tasks/data_file.h"
#include "flags/engine_flags.h"
#include "flags/number_range.h"
#include "flags/output_path.h"
#include "model/architecture.h"
#include "model/config.h"
#include "model/pack_plan.h"
#include "reproduce/dali/dali.h"
#include "reproduce/slicemoe/slicemoe.h"
#include "reproduce/smoe/smoe.h"
#include "reproduce/zipmoe/zipmoe.h"
#include "setup/engine_options.h"
#include "setup/open_model.h"
#include "store/pack/pack.h"
#include "store/source/directory_checkpoint.h"
#include "store/source/store_checkpoint.h"
#include "streams/exit_code.h"
#include "streams/played_routing.h"
#include "streams/standard_error.h"
#include "streams/standard_output.h"
#include "streams/terminal_columns.h"

namespace sluice::app {
namespace {
namespace reproduce_command {

constexpr const char* kTrace = "tests/data/routing/dsv2lite.first48.mrt.zst";
constexpr const char* kSlicemoeTrace =
    "tests/data/routing/dsv2lite.summary612.mrt.zst";  // a prompt and an answer
constexpr const char* kDaliTrace = kSlicemoeTrace;
// Questions that DALI's Table 5 is measured on, and the tasks that read them.
constexpr std::pair<const char*, const char*> kDaliTexts[] = {
    {"arc-easy", "tests/data/eval/arc-easy.json"},
    {"arc-challenge", "tests/data/eval/arc-challenge.jsonl"},
    {"openbookqa", "tests/data/eval/openbookqa.tsv"}};

struct Options {
  CommonFlags common;
  std::string paper, model = "models/fable-moe-18m", whole, output;
  std::string trace;  // empty: the paper's default
  std::string text;   // for slicemoe; empty: the model's eval.txt
  std::vector<std::string> memory;
  std::int64_t tokens = 0, runs = 0;
  bool quick = false;
};

// Like the paper's codec, one that takes time to decode: its pools and threads exist for that.
constexpr const char* kCodec = "zstd";

// Makes the store of one report.
void pack(const std::string& model, const std::string& path) {
  const auto checkpoint = store::open_directory(model, {});
  store::PackOptions options;
  options.codec = kCodec;
  options.interrupted = interrupted_or_unread;
  store::pack(model, path, model::pack_plan(*checkpoint), options);
}

// Quotes a word for a shell.
std::string quoted(const std::string& word) {
  const bool plain = !word.empty() && std::ranges::all_of(word, [](unsigned char c) {
    return std::isalnum(c) != 0 ||
           std::string_view("-_./,:=+@%").find(static_cast<char>(c)) != std::string_view::npos;
  });
  if (plain) return word;
  std::string text = "'";
  for (const char c : word) text += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return text + "'";
}

// Given instead of a path: the report goes without this data.
constexpr const char* kNone = "none";

// `what` describes the value of a flag, `flag` the flag and its value. Data of its default lie with the
// sources.
Error not_there(const std::string& what, const std::string& flag, const std::string& path, bool is_default,
                const std::string& without) {
  Error error(ErrorKind::kNotFound, "no such " + what);
  error.in(path).expected("a file or directory with this name").found("nothing");
  std::string fix = "give " + flag + without;
  if (is_default) {
    std::error_code unknown;
    error.expected("the directory of Sluice's sources, where it lies, as the current one")
        .found(std::filesystem::current_path(unknown).string());
    fix = "start there, or " + fix;
  }
  return error.fix(fix);
}

// Empty: no trace is replayed.
std::string trace_of(const Options& options, const char* usual) {
  if (options.trace == kNone) return "";
  std::string trace = options.trace.empty() ? usual : options.trace;
  if (!is_there(trace))
    throw not_there("recorded routing", Setting::kTrace + " FILE", trace, options.trace.empty(),
                    ", or " + Setting::kTrace + " none to do without it");
  return trace;
}

bool is_default_model(const Options& options) { return options.model == Options().model; }

void give_out(const reproduce::Report& report, const Options& options, const std::string& output) {
  reproduce::write_report(report, output, options.paper);
  if (options.common.json) {
    std::cout << reproduce::to_json(report).dump(-1, ' ', false, Json::error_handler_t::replace) << '\n';
  } else {
    const std::size_t columns = terminal_columns(STDOUT_FILENO);
    constexpr std::size_t kQuantity = 13, kFigures = 20;  // columns where texts begin
    const auto text = [&](const std::string& words, std::size_t at) {
      return wrapped_text(words, columns, at, at);
    };
    for (const reproduce::ReportRow& row : report.rows)
      print_output("{:<8}{:<5}{}\n             paper  {}\n             here   {}\n", row.id,
                   reproduce::mode_text(row), text(row.quantity, kQuantity), text(row.paper, kFigures),
                   text(row.ours, kFigures));
    print_output("\nconfiguration {}\n", report.configuration.hash());
    print_played(report.played);
    print_wrapped(fmt::format("{0}/{1}.md, {0}/{1}.json and {2} pictures", output, options.paper,
                              report.pictures.size()));
  }
}

std::string output_of(const Options& options) {
  return options.output.empty() ? "reproduce-" + options.paper : options.output;
}

constexpr Bytes kMostTextBytes = 64 * kMiB;

// The text that a trained model is measured with; empty for the model `none`. `use`: what the text is for.
std::optional<std::string> text_of(const Options& options, const std::string& use) {
  if (options.model == kNone) {
    if (options.text.empty()) return std::nullopt;
    throw Error(ErrorKind::kUsage, "without a model no text is read")
        .in(Setting::kFile)
        .expected(Setting::kModel + " DIR beside it")
        .found(Setting::kModel + " none")
        .fix("leave out " + Setting::kFile + ", or give " + Setting::kModel + " DIR");
  }
  if (!is_there(options.model))
    throw not_there("model", Setting::kModel + " DIR", options.model, is_default_model(options),
                    ", or " + Setting::kModel + " none for replays alone");
  const std::string text = options.text.empty() ? options.model + "/eval.txt" : options.text;
  if (!is_there(text))
    throw Error(ErrorKind::kNotFound, "there is no text to " + use)
        .in(text)
        .expected("a text file")
        .found("nothing")
        .fix("give " + Setting::kFile + " FILE");
  return read_text_file(text, kMostTextBytes);
}

// For all runs of a trained model; the seed is for replays.
engine::EngineOptions trained_options(const Options& options) {
  EngineFlags flags;
  static_cast<CommonFlags&>(flags) = options.common;
  flags.seed.reset();
  return engine_options(flags);
}

// Settings of the measurements on a model; empty for `none`.
std::optional<reproduce::TrainedSettings> trained_settings(const Options& options,
                                                           const std::string& output) {
  if (options.model != kNone && is_there(options.model)) {
    store::check_not_gguf(options.model);
    store::check_not_packed(options.model);
  }
  std::optional<std::string> text = text_of(options, "measure quality on");
  if (!text) return std::nullopt;
  reproduce::TrainedSettings settings;
  settings.model = options.model;
  settings.text = std::move(*text);
  settings.work = output;
  settings.grid = reproduce::trained_grid(options.quick);
  settings.options = trained_options(options);
  settings.options.positions = 1;  // each run has its own
  return settings;
}

// A command with the flags that all papers without runs of their own take.
std::string command_of(const Options& options) {
  std::string command = "sluice reproduce " + options.paper;
  if (options.quick) command += " " + flag(Setting::kQuick);
  if (!is_default_model(options)) command += " " + flag(Setting::kModel) + " " + quoted(options.model);
  if (!options.text.empty()) command += " " + flag(Setting::kFile) + " " + quoted(options.text);
  if (!options.trace.empty()) command += " " + flag(Setting::kTrace) + " " + quoted(options.trace);
  if (options.common.seed) command += fmt::format(" {} {}", flag(Setting::kSeed), *options.common.seed);
  return command;
}

// For papers without runs of their own.
void refuse_flags_of_runs(const Options& options) {
  if (!options.whole.empty() || !options.memory.empty() || options.tokens != 0 || options.runs != 0)
    throw Error(ErrorKind::kUsage, "these flags are of zipmoe's runs, which compare presets under budgets")
        .in("reproduce " + options.paper)
        .expected("none of " + Setting::kWhole + ", " + Setting::kBudget + ", " + Setting::kRuns + " and " +
                  Setting::kPredict)
        .found(!options.whole.empty()    ? mark(Setting::kWhole)
               : !options.memory.empty() ? mark(Setting::kBudget)
               : options.runs != 0       ? mark(Setting::kRuns)
                                         : mark(Setting::kPredict))
        .fix("leave out all four");
}

void reproduce_slicemoe(const Options& options) {
  refuse_flags_of_runs(options);
  const std::string output = output_of(options);
  reproduce::SlicemoeSettings settings;
  settings.trained = trained_settings(options, output);
  settings.trace = trace_of(options, kSlicemoeTrace);
  const OutputDirectory directory(output);
  check_output();
  settings.quick = options.quick;
  settings.seed = options.common.seed.value_or(settings.seed);
  settings.command = command_of(options);
  settings.version = SLUICE_VERSION;
  settings.interrupted = interrupted_or_unread;
  if (!options.common.quiet && !options.common.json)
    settings.on_stage = [](std::string_view text) { print_message("reproduce: {}", text); };
  give_out(reproduce::reproduce_slicemoe(settings), options, output);
}

// The questions of a task, each with its answers, as one text; empty where they do not lie with the sources.
std::string questions_of(const char* task, const char* path) {
  if (!is_there(path)) return "";
  std::string text;
  for (const eval::ChoiceItem& item :
       eval::find_choice_task(task).read(eval::read_data_file(path, kMostTextBytes), path))
    for (const std::string& choice : item.choices) text += item.context + " " + choice + "\n";
  return text;
}

std::optional<reproduce::DaliTrainedSettings> dali_trained_settings(const Options& options) {
  std::optional<std::string> text = text_of(options, "calibrate and measure predictions with");
  if (!text) return std::nullopt;
  reproduce::DaliTrainedSettings settings{.model = options.model,
                                          .text = std::move(*text),
                                          .options = trained_options(options),
                                          .tokens = options.quick ? 4096u : 16384u,
                                          .interrupted = {}};
  for (const auto& [task, path] : kDaliTexts)
    if (std::string questions = questions_of(task, path); !questions.empty())
      settings.others.push_back({task, std::move(questions)});
  return settings;
}

void reproduce_dali(const Options& options) {
  refuse_flags_of_runs(options);
  const std::string output = output_of(options);
  reproduce::DaliSettings settings;
  settings.trained = dali_trained_settings(options);
  settings.trace = trace_of(options, kDaliTrace);
  const OutputDirectory directory(output);
  check_output();
  settings.quick = options.quick;
  settings.seed = options.common.seed.value_or(settings.seed);
  settings.command = command_of(options);
  settings.version = SLUICE_VERSION;
  settings.interrupted = interrupted_or_unread;
  if (!options.common.quiet && !options.common.json)
    settings.on_stage = [](std::string_view text) { print_message("reproduce: {}", text); };
  give_out(reproduce::reproduce_dali(settings), options, output);
}

std::optional<reproduce::SmoeTrainedSettings> smoe_trained_settings(const Options& options) {
  std::optional<std::string> text = text_of(options, "measure predictions and losses with");
  if (!text) return std::nullopt;
  return reproduce::SmoeTrainedSettings{.model = options.model,
                                        .text = std::move(*text),
                                        .options = trained_options(options),
                                        .windows = options.quick ? 3u : 16u,
                                        .interrupted = {}};
}

void reproduce_smoe(const Options& options) {
  refuse_flags_of_runs(options);
  if (!options.trace.empty() && options.trace != kNone)
    throw Error(ErrorKind::kUsage, "smoe replays synthetic routing, because its router looks at all scores")
        .in(Setting::kTrace)
        .expected("no trace, or none")
        .found(options.trace)
        .fix("leave out " + Setting::kTrace + "; sluice simulate " + Setting::kTrace + " FILE " +
             Setting::kMachine + " smoe-s3 replays one");
  const std::string output = output_of(options);
  reproduce::SmoeReproduction settings;
  settings.trained = smoe_trained_settings(options);
  const OutputDirectory directory(output);
  check_output();
  settings.quick = options.quick;
  settings.seed = options.common.seed.value_or(settings.seed);
  settings.command = command_of(options);
  settings.version = SLUICE_VERSION;
  settings.interrupted = interrupted_or_unread;
  if (!options.common.quiet && !options.common.json)
    settings.on_stage = [](std::string_view text) { print_message("reproduce: {}", text); };
  give_out(reproduce::reproduce_smoe(settings), options, output);
}

void reproduce_zipmoe(const Options& options) {
  const CommonFlags& common = options.common;
  if (!options.text.empty())
    throw Error(ErrorKind::kUsage, "the runs of zipmoe generate, and score no text")
        .in(Setting::kFile)
        .expected("no text")
        .found(options.text)
        .fix("leave out " + Setting::kFile);
  reproduce::ZipmoeSettings settings;
  for (const std::string& size : options.memory)
    settings.budgets.push_back(parse_size(size, Setting::kBudget));
  std::ranges::sort(settings.budgets);
  const std::string output = output_of(options);
  if (options.model == kNone)
    throw Error(ErrorKind::kUsage, "zipmoe runs a model, so there must be one")
        .in(Setting::kModel)
        .expected("a model directory or a packed store; none is for slicemoe, dali and smoe")
        .found(kNone)
        .fix("give " + Setting::kModel + " DIR, or leave it out for the bundled model");
  if (!is_there(options.model))
    throw not_there("model", Setting::kModel + " DIR", options.model, is_default_model(options), "");
  settings.trace = trace_of(options, kTrace);
  const OutputDirectory directory(output);
  check_output();

  EngineFlags flags;
  static_cast<CommonFlags&>(flags) = common;
  flags.memory.clear();
  settings.options = engine_options(flags);
  settings.options.positions = 1;  // each run has its own
  settings.quick = options.quick;
  settings.tokens = static_cast<std::size_t>(options.tokens);
  settings.runs = static_cast<unsigned>(options.runs);
  settings.packed_name = quoted(options.model);
  settings.whole_name = quoted(options.whole.empty() ? options.model : options.whole);
  if (!store::looks_like_store(options.model)) {
    const std::filesystem::path path = std::filesystem::path(options.model + "/").lexically_normal();
    settings.packed_name = quoted(path.parent_path().filename().string() + ".sluice");
    settings.prepare =
        fmt::format("sluice pack {} {} {} {} {}", quoted(options.model), flag(Setting::kOutput),
                    settings.packed_name, flag(Setting::kCodec), kCodec);
  }
  settings.command = "sluice reproduce " + options.paper + (options.quick ? " " + flag(Setting::kQuick) : "");
  if (!is_default_model(options))
    settings.command += " " + flag(Setting::kModel) + " " + quoted(options.model);
  if (!options.whole.empty()) settings.command += " " + flag(Setting::kWhole) + " " + quoted(options.whole);
  for (const std::string& size : options.memory)
    settings.command += " " + flag(Setting::kBudget) + " " + size;
  if (options.tokens != 0) settings.command += fmt::format(" {} {}", flag(Setting::kPredict), options.tokens);
  if (options.runs != 0) settings.command += fmt::format(" {} {}", flag(Setting::kRuns), options.runs);
  if (!options.trace.empty()) settings.command += " " + flag(Setting::kTrace) + " " + quoted(options.trace);
  if (common.threads != 0) settings.flags += fmt::format(" {} {}", flag(Setting::kThreads), common.threads);
  if (common.isa != CommonFlags().isa) settings.flags += " " + flag(Setting::kIsa) + " " + common.isa;
  if (common.io != CommonFlags().io) settings.flags += " " + flag(Setting::kIo) + " " + common.io;
  settings.command += settings.flags;
  settings.version = SLUICE_VERSION;
  settings.interrupted = interrupted_or_unread;
  if (!common.quiet && !common.json)
    settings.on_stage = [](std::string_view text) { print_message("reproduce: {}", text); };

  std::optional<TemporaryDirectory> temporary;
  std::string packed_path = options.model, whole_path = options.whole.empty() ? options.model : options.whole;
  if (!store::looks_like_store(options.model)) {
    if (!common.quiet && !common.json) print_message("reproduce: packing {}", options.model);
    packed_path = temporary.emplace(output).file("model.sluice");
    pack(options.model, packed_path);
  }
  const OpenModel packed = open_model(packed_path, WithTokenizer::kIfThere, common),
                  whole = open_model(whole_path, WithTokenizer::kNo, common);
  if (packed.model.experts.empty())
    throw Error(ErrorKind::kUnsupported, "the model has no experts, so there is nothing to show")
        .in(options.model)
        .expected("a model with routed experts")
        .found("one without any")
        .fix("name a mixture of experts");
  settings.packed = {"", packed.checkpoint.get(), &packed.model};
  settings.whole = {"", whole.checkpoint.get(), &whole.model};
  settings.tokenizer = packed.tokenizer.get();

  const reproduce::Report report = reproduce::reproduce_zipmoe(settings);
  give_out(report, options, output);
  if (!report.data.at("texts_equal").get<bool>()) {
    write_message("sluice: presets gave different texts, which must never be; the figures are void");
    throw Exit{kExitFailed};
  }
}

struct Paper {
  std::string_view name;
  void (*reproduce)(const Options&);
};
constexpr Paper kPapers[] = {{"zipmoe", reproduce_zipmoe},
                             {"slicemoe", reproduce_slicemoe},
                             {"dali", reproduce_dali},
                             {"smoe", reproduce_smoe}};

std::vector<std::string> paper_names() {
  std::vector<std::string> names;
  for (const Paper& paper : kPapers) names.emplace_back(paper.name);
  return names;
}

void reproduce_paper(const Options& options) try {
  std::ranges::find(kPapers, options.paper, &Paper::name)->reproduce(options);
} catch (const Error& error) {
  // Packing, for one, says what is kept to go on from; of a report nothing is kept.
  if (error.kind() != ErrorKind::kInterrupted) throw;
  throw interrupted_error("no report is written").in(output_of(options));
}

}  // namespace reproduce_command
}  // namespace

void add_reproduce(Command& app) {
  using namespace reproduce_command;
  Command* command = app.add_command("reproduce", "Try the tables of a paper again on this machine");
  auto options = std::make_shared<Options>();
  command
      ->add_argument(
          "PAPER", &options->paper,
          "zipmoe (arXiv 2601.21198): runs and replays; slicemoe: replays on the paper's machine, and "
          "quality of a trained model; dali: replays on machines that its paper leaves open, and predictions "
          "of a trained model; smoe: the same of synthetic routing, and losses of a trained model")
      ->required()
      ->one_of(paper_names());
  command->add_flag(Setting::kQuick, options->quick,
                    "Fewer budgets, runs, prompts and tokens: a minute; of slicemoe, dali and smoe a few");
  command->add_option(Setting::kOutput, &options->output,
                      "Directory for PAPER.md, PAPER.json and pictures; default: reproduce-PAPER");
  command
      ->add_option(
          Setting::kModel, &options->model,
          "Model directory (packed into a temporary store) or packed store; of slicemoe a directory; "
          "of slicemoe, dali and smoe also none: replays alone")
      ->show_default();
  command->add_option(Setting::kFile, &options->text,
                      "Text that slicemoe measures quality on, dali predictions, and smoe both; default: "
                      "eval.txt of the model");
  command->add_option(
      Setting::kWhole, &options->whole,
      "The same model stored whole, for presets that read whole experts; default: " + Setting::kModel);
  command
      ->add_option(Setting::kPredict, &options->tokens,
                   "Tokens of each run, at least 4; default: 48, quick 16")
      ->check(whole_number(Setting::kPredict, 4, 1 << 20));
  command->add_option(
      Setting::kTrace, &options->trace,
      fmt::format("Recorded routing of DeepSeek-V2-Lite (.mrt) that is replayed with a virtual "
                  "clock, or none; default: {}, of slicemoe and dali {}, both in tests/data/routing; smoe "
                  "replays none",
                  std::filesystem::path(kTrace).filename().string(),
                  std::filesystem::path(kSlicemoeTrace).filename().string()));
  command->add_option(Setting::kRuns, &options->runs, "Runs of each preset, in turns; 0: 5, quick 2")
      ->check(whole_number(Setting::kRuns, 0, 1000));
  add_common_flags(
      *command, options->common,
      {.threads = "Compute threads; 0: all usable CPUs",
       .isa = "Instruction set: auto, scalar, avx2, avx512, avx512_vbmi2, avx512_bf16, amx, neon",
       .io = "How weights are read: direct, buffered, mmap",
       .seed = "For synthetic routing (slicemoe, dali, smoe); default: 1",
       .json = "Print the report as one JSON object",
       .quiet = "No progress on standard error"});
  command->footer(
      "Examples:\n"
      "  sluice reproduce zipmoe --quick\n"
      "  sluice reproduce slicemoe\n"
      "  sluice reproduce dali --quick\n"
      "  sluice reproduce smoe\n"
      "  sluice reproduce zipmoe --model qwen.sluice --whole Qwen1.5-MoE-A2.7B --budget 6GiB --budget 8GiB "
      "-o evidence");
  command->add_option(
      Setting::kBudget, &options->memory,
      "Budget to compare under; may be given several times; default: what holds 25 to 75 % of the experts");
  command->callback([options] { reproduce_paper(*options); });
}

}  // namespace sluice::app
