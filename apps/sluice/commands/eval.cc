// `sluice eval`: how well a model predicts a text, or chooses among answers.
#include <fmt/format.h>
#include <unistd.h>

#include <iostream>

#include "base/error.h"
#include "base/setting.h"
#include "base/wrapped_text.h"
#include "command.h"
#include "commands/eval_command.h"
#include "engine/engine.h"
#include "engine/run_report.h"
#include "eval/identity.h"
#include "eval/tasks/choice_tasks.h"
#include "flags/model_argument.h"
#include "flags/number_range.h"
#include "flags/output_path.h"
#include "lab/machine/machine.h"
#include "model/architecture.h"
#include "model/config.h"
#include "report/device_report.h"
#include "report/loss_rows.h"
#include "report/start_warnings.h"
#include "streams/standard_error.h"
#include "streams/terminal_columns.h"

namespace sluice::app {
namespace {

// Checks which flags go together.
void check(const EvalOptions& options) {
  const bool text = options.task.empty();
  const auto refuse = [&](bool given, Setting setting) {
    if (given)
      throw Error(ErrorKind::kUsage, text ? "the flag needs a choice task" : "the flag is for texts")
          .in(setting)
          .expected(mark(text ? Setting::kTask : Setting::kFile) + " beside it")
          .found(text ? mark(Setting::kFile) : Setting::kTask + " " + options.task)
          .fix(text ? "give " + Setting::kTask + " and " + Setting::kData + ", or leave it out"
                    : "give " + Setting::kFile + " instead of " + Setting::kTask + ", or leave it out");
  };
  if (text == options.file.empty())
    throw Error(ErrorKind::kUsage, "there is nothing to evaluate, or more than one thing")
        .in(text ? Setting::kFile : Setting::kTask)
        .expected("either a text, " + Setting::kFile + " FILE, or a choice task, " + Setting::kTask +
                  " NAME " + Setting::kData + " FILE")
        .found(text ? "neither" : "both")
        .fix(text ? "give one of the two" : "leave one of the two out");
  refuse(text && !options.data.empty(), Setting::kData);
  refuse(text && options.limit != 0, Setting::kLimit);
  refuse(!text && options.stride != 0, Setting::kStride);
  refuse(!text && !options.reference.empty(), Setting::kReference);
  if (!text) eval::find_choice_task(options.task);
  if (!text && options.data.empty())
    throw Error(ErrorKind::kUsage, "a task needs its data")
        .in(Setting::kData)
        .expected("the file with the items of " + options.task)
        .found("none")
        .fix("give " + Setting::kData + " FILE");
  if (options.reference.empty() && !options.reference_memory.empty())
    throw Error(ErrorKind::kUsage, "there is no reference")
        .in(Setting::kReferenceMemory)
        .expected(Setting::kReference + " MODEL beside it")
        .found("none")
        .fix("give " + Setting::kReference + " MODEL, or leave " + Setting::kReferenceMemory + " out");
  if (options.engine.context != 0)
    throw Error(ErrorKind::kUsage, "the context of eval is its window")
        .in(Setting::kContext)
        .expected(Setting::kCtx + " N")
        .found(std::to_string(options.engine.context))
        .fix("use " + Setting::kCtx + " N");
  if (!options.state.empty()) check_output_path(options.state);
  lab::find_machine(options.machine);
}

}  // namespace

void check_decoder(const model::Model& model, const std::string& path) {
  if (model.config.has_encoder())
    throw Error(ErrorKind::kUnsupported, "an encoder-decoder has no perplexity of a text by itself")
        .in(path)
        .expected("a decoder without an encoder")
        .found(model.config.model_type)
        .fix("score an answer to an input by `sluice forward " + Setting::kEncoderTokens + "`");
}

void check_engine(const EvalOptions& options, const engine::Engine& engine) {
  if (!options.state.empty() && engine.report().policies.depends_on_memory())
    throw Error(ErrorKind::kUsage,
                "this evaluation cannot go on with the same results: they depend on what is in memory")
        .in(Setting::kState)
        .expected("an evaluation that each start decides alike: the router exact and no constraint")
        .found(fmt::format("precision {}, router {}, constraint {}",
                           experts::precision_name(engine.report().policies.precision.mode),
                           engine.report().policies.router->name,
                           experts::constraint_name(engine.report().policies.limits.mode)))
        .fix("leave " + Setting::kState + " out");
  if (!options.engine.quiet) write_start_warnings(engine.report());
}

std::size_t prompt_tokens(const EvalOptions& options, const engine::Engine& engine) {
  if (options.prefill) return static_cast<std::size_t>(*options.prefill);
  return engine.report().policies.decodes_otherwise() ? static_cast<std::size_t>(kPromptTokens)
                                                      : eval::kAllOfIt;
}

void warn_of_few_steps(const EvalOptions& options, const engine::Engine& engine, std::size_t stepped,
                       std::size_t scored) {
  if (options.engine.quiet || !engine.report().policies.decodes_otherwise() || 2 * stepped >= scored) return;
  print_warning(
      "{} of {} scored tokens {} decoded in a step, where precision, router and limit act; "
      "the "
      "others are as the exact router and high precision have them: give a smaller {} than {}",
      stepped == 0 ? "none" : std::to_string(stepped), scored, stepped == 1 ? "is" : "are",
      flag(Setting::kPrefill), prompt_tokens(options, engine));
}

std::string eval_row(std::string_view name, std::string_view text) {
  constexpr std::size_t kText = 11;  // column where the text begins
  return fmt::format("{:<10} {}\n", name, wrapped_text(text, terminal_columns(STDOUT_FILENO), kText, kText));
}

void print_losses(const engine::Engine& engine, std::size_t resumed, std::size_t all) {
  if (resumed == all) return;  // this call has computed nothing
  const auto rows = loss_rows(engine.report());
  for (const auto& [name, text] : rows) std::cout << eval_row(name, text);
  if (!rows.empty() && resumed > 0)
    std::cout << eval_row(
        "", fmt::format("(without the {} of {} that {} had)", resumed, all, flag(Setting::kState)));
}

void print_device(const engine::Engine& engine) {
  const std::string device = device_text(engine.report());
  if (!device.empty()) std::cout << eval_row("device", device);
}

Json prefill_json(std::size_t prompt) { return prompt == eval::kAllOfIt ? Json(nullptr) : Json(prompt); }

void add_eval(Command& app) {
  Command* command =
      app.add_command("eval", "Perplexity of a text, distance from another model, choice tasks");
  auto options = std::make_shared<EvalOptions>();
  const std::string text = "A text", task = "A choice task";
  command->add_option(Setting::kFile, &options->file, "Text to score, also NAME.zst; - is standard input")
      ->group(text);
  command
      ->add_option(Setting::kCtx, &options->window,
                   "Tokens of a window, at least 2; default: 512. A task cuts what is longer; its default: "
                   "the model's "
                   "maximum")
      ->check(whole_number(Setting::kCtx, 2, 1 << 24));
  command
      ->add_option(Setting::kStride, &options->stride,
                   "Tokens from window to window, at most " + Setting::kCtx +
                       ": the rest of a window is context; default: " + Setting::kCtx)
      ->check(whole_number(Setting::kStride, 1, 1 << 24))
      ->group(text);
  take_model_name(*command, options->reference, options->engine);
  command
      ->add_option(Setting::kReference, &options->reference,
                   "Exact model to compare with, of the same vocabulary: KL divergence and top-1 agreement")
      ->group(text);
  command
      ->add_option(
          Setting::kReferenceMemory, &options->reference_memory,
          "The reference's share of " + Setting::kMemory + "; default: half of what the two models have")
      ->group(text);
  command->add_option(Setting::kTask, &options->task, eval::choice_task_names())->group(task);
  command->add_option(Setting::kData, &options->data, "Its items, also NAME.zst")->group(task);
  command->add_option(Setting::kLimit, &options->limit, "Only this many items, from the first")
      ->check(whole_number(Setting::kLimit, 1, 1 << 30))
      ->group(task);
  command
      ->add_option(Setting::kPrefill, &options->prefill,
                   "This many tokens of each window or item, from the first, go in as a prompt, the others "
                   "one by one, as in a "
                   "generation; default: all as a prompt, but 64 where decoding changes precision or routing")
      ->check(whole_number(Setting::kPrefill, 0, 1 << 24));
  command
      ->add_option(Setting::kMachine, &options->machine,
                   "Modelled hardware of energy_model (" + Setting::kJson +
                       "): slicemoe, or a JSON file (docs/replay.md)")
      ->show_default();
  command->add_option(
      Setting::kState, &options->state,
      "File that keeps what is finished: the same command goes on there after an interruption");
  add_engine_flags(*command, options->engine,
                   {.seed = kSeedOfCaches,
                    .router = kRouterOfSteps,
                    .context = "Refused: the context of eval is its window, " + Setting::kCtx,
                    .devices = true});
  command->footer(
      "What is computed, and how it compares with other tools: docs/eval.md\n"
      "Examples:\n"
      "  sluice eval models/fable-moe-18m -f models/fable-moe-18m/eval.txt\n"
      "  sluice eval models/fable-moe-18m -f models/fable-moe-18m/eval.txt --ctx 1024 --stride 512 --state "
      "ppl.state\n"
      "  sluice eval fable.sluice -f models/fable-moe-18m/eval.txt --router cache-prior --prefill 64 "
      "--reference models/fable-moe-18m --memory 256MiB\n"
      "  sluice eval models/fable-moe-18m --task arc-easy --data arc-easy.jsonl.zst --limit 100 --json");
  command->callback([options] {
    check(*options);
    options->task.empty() ? evaluate_text(*options) : evaluate_choices(*options);
  });
}

}  // namespace sluice::app
