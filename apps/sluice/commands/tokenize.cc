// `sluice tokenize`: turns text into token ids.
#include <fmt/format.h>

#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "base/json/json.h"
#include "base/setting.h"
#include "command.h"
#include "flags/model_argument.h"
#include "model/architecture.h"
#include "model/config.h"
#include "setup/open_tokenizer.h"
#include "setup/token_input.h"
#include "streams/standard_output.h"

namespace sluice::app {
namespace {
namespace tokenize_command {

struct Options {
  CommonFlags common;
  std::string path, prompt, file;
  bool from_file = false, no_special = false;
};

// A piece on one line, as a JSON string, so that newlines and quotes are visible.
std::string quoted(const std::string& piece) {
  return Json(piece).dump(-1, ' ', false, Json::error_handler_t::replace);
}

void tokenize(const Options& options) {
  const std::unique_ptr<tokenizer::Tokenizer> tokenizer = open_tokenizer(options.path, options.common);
  const std::string text = options.from_file ? read_input_text(options.file) : options.prompt;
  const std::vector<tokenizer::TokenId> ids = encode_file(
      *tokenizer, text, options.from_file ? input_name(options.file) : mark(Setting::kPrompt),
      options.no_special ? tokenizer::AddSpecial::kNo : tokenizer::AddSpecial::kYes, options.common);
  if (options.common.json) {
    std::cout << Json{{"ids", ids}}.dump() << '\n';
    return;
  }
  std::string lines;
  for (const tokenizer::TokenId id : ids) {
    lines +=
        fmt::format("{:>7}  {}\n", id, quoted(tokenizer->decode({&id, 1}, tokenizer::ShowSpecial::kYes)));
  }
  std::cout << output_text(lines);
}

}  // namespace tokenize_command
}  // namespace

void add_tokenize(Command& app) {
  using namespace tokenize_command;
  Command* command = app.add_command("tokenize", "Turn text into token ids");
  auto options = std::make_shared<Options>();
  add_model_argument(
      *command, "PATH", options->path, options->common,
      "Model directory, packed store, GGUF file, tokenizer.json, or a name that sluice list shows");
  Command* text = command->add_choice("Text");
  text->add_option(Setting::kPrompt, &options->prompt, "The text");
  Flag* file =
      text->add_option(Setting::kFile, &options->file, "File that holds the text; - is standard input");
  command->add_flag(Setting::kNoSpecial, options->no_special,
                    "Leave out what the tokenizer adds around a text (such as a begin token)");
  add_common_flags(*command, options->common,
                   {.memory = "A text too large for this is refused; default: what is free",
                    .json = "Print {\"ids\": [...]}",
                    .quiet = "No warnings on standard error"});
  command->footer(
      "Examples:\n"
      "  sluice tokenize models/fable-moe-18m -p \"Once upon a time\"\n"
      "  sluice tokenize tokenizer.json -f book.txt --no-special --json");
  command->callback([options, file] {
    options->from_file = file->given();
    tokenize(*options);
  });
}

}  // namespace sluice::app
