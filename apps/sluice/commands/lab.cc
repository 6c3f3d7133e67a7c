// `sluice lab NAME`: asks a policy for its decision.
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <memory>

#include "base/error.h"
#include "base/setting.h"
#include "base/stop_request.h"
#include "base/wrapped_text.h"
#include "command.h"
#include "flags/common_flags.h"
#include "lab/ask/lab.h"
#include "streams/exit_code.h"
#include "streams/interrupt.h"
#include "streams/standard_input.h"
#include "streams/standard_output.h"
#include "streams/terminal_columns.h"

namespace sluice::app {
namespace {
namespace lab_command {

struct Options {
  CommonFlags common;
  std::string name;
  std::string file;
};

Json fields_json(std::initializer_list<std::span<const lab::Field>> lists) {
  Json all = Json::array();
  for (std::span<const lab::Field> fields : lists)
    for (const lab::Field& field : fields) all.push_back({{"name", field.name}, {"text", field.text}});
  return all;
}

void print_fields(const char* label, std::span<const lab::Field> fields) {
  constexpr std::size_t kText = 19;  // column where texts begin
  for (const lab::Field& field : fields) {
    std::string line = fmt::format("  {}  {}", label, field.name);
    line += std::string(line.size() < kText ? kText - line.size() : 1, ' ');
    print_output("{}{}\n", line,
                 wrapped_text(field.text, terminal_columns(STDOUT_FILENO), line.size(), kText));
    label = "   ";
  }
}

void list(bool json) {
  Json all = Json::array();
  for (const lab::Function* function : lab::functions()) {
    if (json) {
      all.push_back({{"name", function->name},
                     {"section", function->section},
                     {"in", fields_json({function->in, function->in_by_mode})},
                     {"out", fields_json({function->out})}});
      continue;
    }
    std::cout << function->name << " (SPEC " << function->section << ")\n";
    print_fields("in ", function->in);
    print_fields("   ", function->in_by_mode);
    print_fields("out", function->out);
  }
  if (json) std::cout << all.dump(2) << "\n";
}

void run(const Options& options) {
  if (options.name == "list") return list(options.common.json);
  const lab::Function& function = lab::find_function(options.name);
  bool stopped = false;
  auto stop = [&] { return stopped = interrupted(); };
  bool good = false;
  if (options.file.empty()) {
    good = lab::answer_all(function, standard_input(), "standard input", std::cout, stop);
  } else {
    std::error_code ignored;  // opening it says what is wrong
    if (std::filesystem::is_directory(options.file, ignored))
      throw Error(ErrorKind::kInvalid, "not a file")
          .in(options.file)
          .expected("a file of JSON lines")
          .found("a directory")
          .fix("name a file in it");
    std::ifstream in(options.file, std::ios::binary);
    if (!in) throw io_error("open", options.file, errno);
    good = lab::answer_all(function, in, options.file, std::cout, stop);
  }
  if (stopped) throw interrupted_error();
  if (!good) throw Exit{kExitFailed};
}

}  // namespace lab_command
}  // namespace

void add_lab(Command& app) {
  using namespace lab_command;
  auto options = std::make_shared<Options>();
  Command* command =
      app.add_command("lab", "Ask any policy what it would decide: JSON lines in, JSON lines out");
  command->add_argument("NAME", &options->name, "What to ask, or `list` for all names with their fields")
      ->required();
  command->add_option(Setting::kFile, &options->file,
                      "Read the lines from this file instead of standard input");
  add_common_flags(*command, options->common, {.json = "Print `list` as JSON (answers always are)"});
  command->footer(
      "Examples:\n"
      "  sluice lab list\n"
      "  sluice lab evict -f questions.jsonl\n"
      "A line of questions.jsonl: {\"policy\": \"lru\", \"capacity\": 2, \"requests\": [1, 2, 3, 1], "
      "\"seed\": 0}");
  command->callback([options] { run(*options); });
}

}  // namespace sluice::app
