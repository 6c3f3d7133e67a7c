#include "commands/chat/chat_session.h"

#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <random>
#include <utility>

#include "base/error.h"
#include "base/files/file.h"
#include "base/files/unfinished_file.h"
#include "base/json/json.h"
#include "base/shown_text.h"
#include "commands/chat/turn_reader.h"
#include "engine/draft/drafting.h"
#include "engine/run_report.h"
#include "engine/watch/statistics.h"
#include "report/draft_report.h"
#include "report/live_text.h"
#include "report/memory_report.h"
#include "report/residency_picture.h"
#include "streams/exit_code.h"
#include "streams/interrupt.h"
#include "streams/standard_error.h"
#include "streams/standard_output.h"
#include "streams/terminal_columns.h"
#include "tokenizer/text/text_check.h"

namespace sluice::app {
namespace {

constexpr Bytes kMostEdited = Bytes{1} << 20;  // size of a message from an editor
constexpr auto kSoon = std::chrono::seconds(2);

std::uint64_t random_seed() {
  return (std::uint64_t{std::random_device{}()} << 32 | std::random_device{}()) >> 11;
}

// One value behind a command.
const std::string& file_of(const SlashCommand& command, std::string_view name) {
  if (command.words.empty())
    throw Error(ErrorKind::kUsage, "the command needs a file")
        .in(fmt::format("/{}", name))
        .expected(fmt::format("/{} FILE", name))
        .found("none")
        .fix("name the file");
  return command.words;
}

}  // namespace

ChatSession::ChatSession(ChatModel& model, ChatSettings settings, std::string system, bool json, bool quiet,
                         bool person)
    : model_(model), settings_(std::move(settings)), output_(json, quiet), person_(person), quiet_(quiet) {
  dialogue_.set_system(std::move(system));
}

void ChatSession::answer_one(const std::string& question) { ask(question); }

void ChatSession::converse(LineReader& lines) {
  for (;;) {
    try {
      if (take_line(lines) == Next::kLeave) return;
    } catch (const Error& error) {
      const bool by_words = error.kind() == ErrorKind::kUsage || error.kind() == ErrorKind::kInvalid ||
                            error.kind() == ErrorKind::kNotFound || error.kind() == ErrorKind::kIo;
      if (!person_ || !by_words) throw;
      print_message("{}", error.what());
    }
  }
}

ChatSession::Next ChatSession::take_line(LineReader& lines) {
  const ReadLine turn = TurnReader(lines).read();
  if (turn.end == LineEnd::kEndOfInput) return Next::kLeave;
  if (turn.end == LineEnd::kInterrupted) {
    if (!person_ || !forget_interrupt()) throw Exit{kExitInterrupted};
    hint_how_to_leave(!turn.text.empty());
    return Next::kGoOn;
  }
  hinted_.reset();
  if (turn.text.find_first_not_of(" \t\r\n") == std::string::npos) return Next::kGoOn;
  if (const auto command = slash_command(turn.text)) return obey(*command);
  ask(turn.text.starts_with("//") ? turn.text.substr(1) : turn.text);
  return Next::kGoOn;
}

void ChatSession::hint_how_to_leave(bool typed) {
  const auto now = std::chrono::steady_clock::now();
  if (typed) return;
  if (hinted_ && now - *hinted_ < kSoon) throw Exit{kExitInterrupted};
  hinted_ = now;
  print_message("Ctrl-C once more leaves; so do Ctrl-D and /exit");
}

void ChatSession::ask(const std::string& question) {
  tokenizer::check_text(question);
  Dialogue asked = dialogue_;
  asked.ask(question);
  answer(std::move(asked));
}

void ChatSession::answer(Dialogue asked) {
  const std::uint64_t seed = settings_.seed ? *settings_.seed : random_seed();
  output_.begin(model_.engine());
  const ChatAnswer answer = model_.answer(
      asked.messages(), settings_, seed,
      [&](double done, std::size_t tokens) { output_.prompt(done, tokens); },
      [&](const tokenizer::AnswerEvent& event) { output_.event(event, settings_.think); },
      interrupted_or_unread);
  output_.end(answer, settings_, model_.context());
  if (!answer.result.tokens.empty()) {  // else it was stopped before it began
    asked.answer(answer.content, answer.reasoning, answer.calls);
    dialogue_ = std::move(asked);
    used_ = answer.prompt_tokens + answer.result.tokens.size();
  }
  const bool stopped = answer.result.reason == engine::StopReason::kInterrupted;
  if (stopped && (!person_ || !forget_interrupt())) throw Exit{kExitInterrupted};
}

ChatSession::Next ChatSession::obey(const SlashCommand& command) {
  switch (command.what) {
    case Slash::kExit:
      return Next::kLeave;
    case Slash::kHelp: {
      std::string text;
      for (const SlashRow& row : slash_rows())
        if (!row.summary.empty())
          text += fmt::format("  {:<17} {}\n", fmt::format("/{} {}", row.name, row.words), row.summary);
      write_report(text + "Lines between \"\"\" and \"\"\", or that end with \\, are one message.\n");
      return Next::kGoOn;
    }
    case Slash::kClear:
      dialogue_.clear();
      return Next::kGoOn;
    case Slash::kUndo:
      if (std::string question; dialogue_.take_back(&question))
        print_message("forgotten: {}", shown_text(question));
      else
        print_message("nothing was asked yet");
      return Next::kGoOn;
    case Slash::kRegen:
      if (Dialogue asked = dialogue_; asked.take_back_answer())
        answer(std::move(asked));
      else
        print_message("nothing was asked yet");
      return Next::kGoOn;
    case Slash::kEdit:
      edit();
      return Next::kGoOn;
    case Slash::kSystem:
      dialogue_.set_system(command.words);
      return Next::kGoOn;
    case Slash::kSet: {
      const std::size_t end = std::min(command.words.find(' '), command.words.size());
      const std::size_t value = command.words.find_first_not_of(' ', end);
      set_by_name(settings_, command.words.substr(0, end),
                  value == std::string::npos ? "" : command.words.substr(value));
      return Next::kGoOn;
    }
    case Slash::kShow:
      show();
      return Next::kGoOn;
    case Slash::kStats:
      show_statistics();
      return Next::kGoOn;
    case Slash::kExperts: {
      const std::size_t columns = terminal_columns(STDERR_FILENO);
      const bool colour = ::isatty(STDERR_FILENO) == 1 && colour_allowed();
      write_report(residency_picture(model_.engine().report(), colour, columns));
      return Next::kGoOn;
    }
    case Slash::kTokens:
      print_message("{} of {} tokens of the context are used", dialogue_.empty() ? 0 : used_,
                    model_.context());
      return Next::kGoOn;
    case Slash::kSave: {
      const std::string& file = file_of(command, "save");
      if (kind_at(file) != "nothing") throw name_is_taken(file);
      write_file_atomically(file, dialogue_.messages().dump(2) + '\n');
      print_message("{}: written", shown_text(file));
      return Next::kGoOn;
    }
    case Slash::kLoad: {
      const std::string& file = file_of(command, "load");
      dialogue_.load(read_json_file(file), file);
      return Next::kGoOn;
    }
  }
  return Next::kGoOn;
}

void ChatSession::edit() {
  const char* editor = std::getenv("VISUAL");
  if (editor == nullptr || *editor == '\0') editor = std::getenv("EDITOR");
  if (!person_ || editor == nullptr || *editor == '\0')
    throw Error(ErrorKind::kUsage, "no editor is known")
        .in("/edit")
        .expected("a terminal, and an editor's name in VISUAL or EDITOR")
        .found("neither")
        .fix("set EDITOR, or write several lines between \"\"\" and \"\"\"");
  std::string path = std::filesystem::temp_directory_path().string() + "/sluice-message-XXXXXX";
  const int file = ::mkstemp(path.data());
  if (file < 0) throw io_error("make", path, errno);
  ::close(file);
  const UnfinishedFile removed(path);
  const int status = std::system((std::string(editor) + " '" + path + "'").c_str());
  if (status != 0)
    throw Error(ErrorKind::kIo, "the editor failed")
        .in(editor)
        .expected("exit code 0")
        .found(fmt::format("{}", WIFEXITED(status) ? WEXITSTATUS(status) : -1))
        .fix("nothing was sent; try again");
  std::string text = read_text_file(path, kMostEdited);
  while (text.ends_with('\n')) text.pop_back();
  if (!text.empty()) ask(text);
}

void ChatSession::show() const {
  std::string text = fmt::format("  {:<10} {}\n  {:<10} {}\n  {:<10} {}\n", "model",
                                 shown_text(model_.engine().report().checkpoint.path()), "template",
                                 shown_text(model_.prompt().place()), "context", model_.context());
  for (const auto& [name, value] : shown_settings(settings_))
    text += fmt::format("  {:<10} {}\n", name, escaped_lines(value));
  text += fmt::format("  {:<10} {}\n", "system",
                      dialogue_.system().empty() ? "none" : escaped_lines(dialogue_.system()));
  write_report(text);
}

void ChatSession::show_statistics() const {
  const engine::RunReport run = model_.engine().report();
  const engine::ExpertStatistics total = run.statistics.total();
  const engine::DiskReport disk = run.disk();
  const std::string drafts = drafts_text(model_.engine().report().drafting);
  write_report(fmt::format(
      "  {:<10} {} in prompts, {} decoded{}\n  {:<10} {} of {}\n  {:<10} {} in {} reads\n  {:<10} {}\n",
      "tokens", run.statistics.prefill.tokens, run.statistics.decode.tokens,
      drafts.empty() ? "" : "; drafts: " + drafts, "hits", total.hits, total.accesses, "disk",
      format_bytes(disk.bytes_read), disk.reads, "memory", memory_line(run)));
}

}  // namespace sluice::app
