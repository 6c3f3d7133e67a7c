// `sluice detokenize`: turns token ids into text.
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
namespace detokenize_command {

struct Options {
  CommonFlags common;
  std::string path, tokens;
  bool special = false;
};

void detokenize(const Options& options) {
  const std::vector<tokenizer::TokenId> ids = parse_token_list(options.tokens, Setting::kTokens);
  const std::unique_ptr<tokenizer::Tokenizer> tokenizer = open_tokenizer(options.path, options.common);
  const std::string text =
      tokenizer->decode(ids, options.special ? tokenizer::ShowSpecial::kYes : tokenizer::ShowSpecial::kNo);
  if (options.common.json) {
    std::cout << Json{{"text", text}}.dump(-1, ' ', false, Json::error_handler_t::replace) << '\n';
  } else {
    std::cout << output_text(text) << '\n';
  }
}

}  // namespace detokenize_command
}  // namespace

void add_detokenize(Command& app) {
  using namespace detokenize_command;
  Command* command = app.add_command("detokenize", "Turn token ids into text");
  auto options = std::make_shared<Options>();
  add_model_argument(
      *command, "PATH", options->path, options->common,
      "Model directory, packed store, GGUF file, tokenizer.json, or a name that sluice list shows");
  command->add_option(Setting::kTokens, &options->tokens, "Token ids, separated by commas")->required();
  command->add_flag(Setting::kSpecial, options->special, "Show special tokens too");
  add_common_flags(*command, options->common,
                   {.json = "Print {\"text\": \"...\"}", .quiet = "No warnings on standard error"});
  command->footer(
      "Example:\n"
      "  sluice detokenize models/fable-moe-18m --tokens 12,407,33");
  command->callback([options] { detokenize(*options); });
}

}  // namespace sluice::app
