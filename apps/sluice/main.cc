// The program: a table of commands, and the single place where errors become text and exit codes.
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <exception>
#include <iterator>
#include <new>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/error_text.h"
#include "base/machine/system_memory.h"
#include "base/setting.h"
#include "base/shown_text.h"
#include "base/unknown_name.h"
#include "command.h"
#include "engine/plan/memory_plan.h"
#include "flags/written_names.h"
#include "streams/exit_code.h"
#include "streams/interrupt.h"
#include "streams/standard_error.h"
#include "streams/standard_output.h"
#include "streams/terminal_columns.h"

namespace sluice::app {
namespace {

struct CommandRow {
  std::string_view name;
  void (*add)(Command&);
};

constexpr CommandRow kCommands[] = {
    // a model
    {"run", add_run},
    {"chat", add_chat},
    {"serve", add_serve},
    {"forward", add_forward},
    {"eval", add_eval},
    {"profile", add_profile},
    {"plan", add_plan},
    // its files
    {"list", add_list},
    {"inspect", add_inspect},
    {"pack", add_pack},
    {"unpack", add_unpack},
    {"verify", add_verify},
    {"quantise", add_quantise},
    {"calibrate", add_calibrate},
    // experiments
    {"tokenize", add_tokenize},
    {"detokenize", add_detokenize},
    {"template", add_template},
    {"trace", add_trace},
    {"simulate", add_simulate},
    {"lab", add_lab},
    {"synth", add_synth},
    {"compare", add_compare},
    {"reproduce", add_reproduce},
    // this machine, this program
    {"doctor", add_doctor},
    {"version", add_version},
};

constexpr const char* kExamples = R"(Examples:
  sluice doctor
  sluice pack Qwen1.5-MoE-A2.7B -o qwen.sluice
  sluice run qwen.sluice -p "The lighthouse keeper" -n 100 --memory 8GiB
  sluice run --help

MODEL is a Hugging Face directory, a packed NAME.sluice store, a GGUF file (the first of its parts), or a name that `sluice list` shows. Sizes read 8GiB, 1.5G (binary) or 500MB (decimal).
Exit codes: 0 done, 1 failed, 2 wrong usage, 130 interrupted, 141 nobody reads standard output any more.)";

// If one of the three is closed, the next opened file would take its number, and messages would go into that
// file. Output to a closed standard output is lost and must not look like success: it is opened for reading
// only.
void open_standard_files() {
  for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; ++fd) {
    if (::fcntl(fd, F_GETFD) == -1) ::open("/dev/null", fd == STDERR_FILENO ? O_WRONLY : O_RDONLY);
  }
}

// ---- Errors as text

int fail(int code, std::string_view message) {
  print_message("sluice: {}", message);
  return code;
}

int exit_code(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::kUsage:
      return kExitUsage;
    case ErrorKind::kInterrupted:
      return kExitInterrupted;
    default:
      return kExitFailed;
  }
}

// ---- Command line

Error unknown_command(const std::string& word, std::span<const std::string> names) {
  const std::string meant = nearest(word, names);
  return Error(ErrorKind::kUsage, "unknown command \"" + word + '"')
      .expected("a command that `sluice " + Setting::kHelp + "` lists")
      .fix(meant.empty() ? "give one of these" : "did you mean " + meant + "?");
}

// A flag with "=" and nothing behind that becomes two words, the second of them empty: the parser would take
// the next flag for its value.
void split_empty_values(std::vector<std::string>& words) {
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (!words[i].starts_with("--") || words[i].find('=') != words[i].size() - 1) continue;
    words[i].pop_back();
    words.insert(words.begin() + static_cast<std::ptrdiff_t>(++i), "");
  }
}

// An unset variable in a script must not read as "not given".
void check_empty_words(const std::vector<std::string>& words) {
  for (std::size_t i = 1; i < words.size(); ++i) {
    const std::string& before = words[i - 1];
    const bool text = name_of(Setting::kPrompt).has_flag(before) || name_of(Setting::kStop).has_flag(before);
    if (!words[i].empty() || text) continue;
    if (before.starts_with('-'))
      throw Error(ErrorKind::kUsage, "the value is empty")
          .in(before)
          .expected("a value")
          .found("\"\"")
          .fix("give one, or leave the flag out");
    throw Error(ErrorKind::kUsage, "the argument after \"" + before + "\" is empty")
        .expected("a name")
        .found("\"\"")
        .fix("give one");
  }
}

// The command that the first word names; all of them where it names none, for the help and for errors. What
// the others would declare is no part of a run's budget then.
void add_commands(Command& app, const std::string& first) {
  const auto* const named = std::ranges::find(kCommands, first, &CommandRow::name);
  if (named != std::end(kCommands)) return named->add(app);
  for (const CommandRow& row : kCommands) row.add(app);
}

// The command comes first.
void check_command(const std::vector<std::string>& words, const std::vector<std::string>& names) {
  if (std::find(names.begin(), names.end(), words[0]) != names.end()) return;
  if (!words[0].starts_with('-')) throw unknown_command(words[0], names);
  const bool later = std::ranges::find_first_of(words, names) != words.end();
  if (later && !name_of(Setting::kHelp).has_flag(words[0]) && !name_of(Setting::kVersion).has_flag(words[0]))
    throw Error(ErrorKind::kUsage, "the flag stands before the command")
        .in(words[0].substr(0, words[0].find('=')))
        .expected("the command first, then its flags")
        .found("the flag first")
        .fix("`sluice " + Setting::kHelp + "` lists the commands");
}

// Keys of clients leave the words that other users of the machine can read of a process.
void hide_keys(int argc, char** argv) {
  const std::string name = flag(Setting::kApiKey);
  for (int i = 1; i < argc; ++i) {
    std::string_view word = argv[i];
    char* key = nullptr;
    if (word == name && i + 1 < argc) key = argv[i + 1];
    if (word.starts_with(name + '=')) key = argv[i] + name.size() + 1;
    if (key != nullptr) std::fill_n(key, std::string_view(key).size(), 'x');
  }
}

int run(int argc, char** argv) {
  Command app("sluice",
              "Runs mixture-of-experts language models inside a memory budget smaller than the model.");
  app.version("sluice " SLUICE_VERSION);
  app.footer(kExamples);

  std::vector<std::string> words(argv + 1, argv + argc);
  hide_keys(argc, argv);
  if (!words.empty() && words[0] == "help") {  // `sluice help run` asks for the help of run
    words.erase(words.begin());
    words.emplace_back(flag(Setting::kHelp));
  }
  add_commands(app, words.empty() ? "" : words[0]);
  if (words.empty()) {
    write_report(app.help(terminal_columns(STDERR_FILENO)));
    return kExitUsage;
  }
  split_empty_values(words);
  check_empty_words(words);
  check_command(words, app.command_names());
  app.run(words);
  return 0;
}

int run_to_exit(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const Exit& exit) {
    return exit.code;
  }
}

// What is printed before an error stands before it wherever both go.
int run_and_report(int argc, char** argv) {
  StandardOutput output;
  try {
    const int code = run_to_exit(argc, argv);
    output.finish();
    return code;
  } catch (const Exit& exit) {
    return exit.code;
  } catch (Error& error) {
    output.finish_silently();
    // The library that refuses a value says which would do; where they are explained, only the program knows.
    if (error.kind() == ErrorKind::kUsage && error.fix_text().empty())
      error.fix(argc > 1 && argv[1][0] != '-'
                    ? fmt::format("`sluice {} {}` explains it", argv[1], mark(Setting::kHelp))
                    : "`sluice " + Setting::kHelp + "` lists the commands");
    const SettingNames names = written_names({argv + 1, argv + argc});
    return fail(exit_code(error.kind()), error_text(error, NamedBy::kFlag, names));
  } catch (const std::bad_alloc&) {
    output.finish_silently();
    return fail(kExitFailed,
                "out of memory: the system refused an allocation; close other programs or give a smaller " +
                    flag(Setting::kMemory));
  } catch (const std::exception& error) {
    output.finish_silently();
    return fail(kExitFailed, fmt::format("internal error: {}", shown_text(error.what())));
  }
}

}  // namespace

}  // namespace sluice::app

int main(int argc, char** argv) {
  sluice::engine::process_baseline();  // before anything is allocated
  sluice::touch_program();
  sluice::app::open_standard_files();
  sluice::app::install_signal_handlers();
  return sluice::app::run_and_report(argc, argv);
}
