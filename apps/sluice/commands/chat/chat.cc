// `sluice chat`: a conversation with a model, inside a memory budget.
#include <unistd.h>

#include <memory>
#include <string>

#include "base/error.h"
#include "base/files/file.h"
#include "base/setting.h"
#include "command.h"
#include "commands/chat/chat_model.h"
#include "commands/chat/chat_session.h"
#include "engine/draft/drafting.h"
#include "engine/run_report.h"
#include "flags/draft_flag.h"
#include "flags/engine_flags.h"
#include "flags/number_range.h"
#include "flags/sampling_flags.h"
#include "report/live_text.h"
#include "streams/standard_error.h"

namespace sluice::app {
namespace {
namespace chat_command {

constexpr Bytes kMostSystemText = Bytes{1} << 20;

struct Options {
  EngineFlags engine;
  SamplingFlags sampling;
  DraftFlag draft;
  std::string prompt, system, think = "auto", chat_template;
  std::vector<std::string> stop;
  std::int64_t most_tokens = 0;
  bool no_history = false, simple_io = false;
};

// "@FILE" stands for the text of a file.
std::string system_text(const std::string& given) {
  if (!given.starts_with('@')) return given;
  std::string text = read_text_file(given.substr(1), kMostSystemText);
  while (text.ends_with('\n')) text.pop_back();
  return text;
}

ChatSettings settings_of(const Options& options, const model::GenerationConfig& generation) {
  ChatSettings settings;
  settings.sampler = sampler_config(options.sampling, generation, 0);
  settings.seed = options.engine.seed;
  settings.most_tokens = static_cast<std::size_t>(options.most_tokens);
  settings.stop = options.stop;
  settings.think = think_named(flag(Setting::kThink), options.think);
  return settings;
}

std::unique_ptr<LineReader> lines_of(const Options& options, bool person) {
  const bool editable = person && stdout_moves_cursor() && !options.simple_io;
  return editable ? edited_lines(options.no_history ? "" : usual_history_file()) : plain_lines(person);
}

void chat(const Options& options) {
  const EngineFlags& flags = options.engine;
  const std::string system = system_text(options.system);
  const bool one = !options.prompt.empty();
  const bool person = !one && !flags.json && ::isatty(STDIN_FILENO) == 1 && ::isatty(STDOUT_FILENO) == 1;
  ChatModel model(flags, options.chat_template, options.draft.kind());
  if (const std::string why = model.engine().report().drafting.why_off();
      !why.empty() && !options.draft.name.empty() && !flags.quiet)
    print_warning("{}: off {}", flag(Setting::kDraft), why);
  const ChatSettings settings = settings_of(options, model.open().model.generation);
  ChatSession session(model, settings, system, flags.json, flags.quiet, person);
  if (one) return session.answer_one(options.prompt);
  if (person && !flags.quiet) print_message("{}: /help lists the commands, Ctrl-D leaves", flags.model);
  const std::unique_ptr<LineReader> lines = lines_of(options, person);
  session.converse(*lines);
}

}  // namespace chat_command
}  // namespace

void add_chat(Command& app) {
  using namespace chat_command;
  Command* command = app.add_command("chat", "Talk with a model inside a memory budget");
  auto options = std::make_shared<Options>();
  command->add_option(Setting::kPrompt, &options->prompt, "Say this, print the answer, and end");
  command->add_option(Setting::kSystem, &options->system,
                      "What the model is told before all; @FILE: the text of a file");
  command
      ->add_option(Setting::kThink, &options->think,
                   "Reasoning: as the template has it, on, off, or hidden: auto, on, off, hide")
      ->show_default();
  command->add_option(Setting::kChatTemplate, &options->chat_template,
                      "A file, or chatml, in place of the model's own template");
  command->add_flag(Setting::kNoHistory, options->no_history, "Neither read nor keep what is typed");
  command->add_flag(Setting::kSimpleIo, options->simple_io, "No keys to edit lines");
  command->add_option(Setting::kPredict, &options->most_tokens, "Most tokens of an answer; 0: as many as fit")
      ->show_default()
      ->check(whole_number(Setting::kPredict, 0, std::uint64_t{1} << 31))
      ->group(kSamplingGroup);
  add_sampling_flags(*command, options->sampling, SamplingChoice::kAll);
  command
      ->add_option(Setting::kStop, &options->stop,
                   "End an answer before this text; may be given several times")
      ->group(kSamplingGroup);
  add_draft_flag(*command, options->draft);
  add_engine_flags(
      *command, options->engine,
      {.seed = "Same seed, same random choices in every answer; default: another for each",
       .context = "Most tokens of the conversation; default: 4096, or the model's maximum if that is less",
       .devices = true,
       .finds_device = true});
  command->footer(
      "Examples:\n"
      "  sluice chat qwen.sluice --memory 8GiB\n"
      "  sluice chat models/fable-moe-18m --chat-template chatml --memory 40MiB -p \"Tell me a story.\"\n"
      "  sluice chat qwen.sluice --system @manner.txt --think hide < questions.txt");
  command->callback([options] { chat(*options); });
}

}  // namespace sluice::app
