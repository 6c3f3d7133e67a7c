#include "commands/chat/open_chat_template.h"

#include <filesystem>

#include "base/error.h"
#include "base/setting.h"
#include "flags/model_argument.h"
#include "store/source/open_checkpoint.h"
#include "tokenizer/chat/chat_sources.h"

namespace sluice::app {

namespace {

tokenizer::ChatTemplate choose(tokenizer::ChatSources sources, const std::string& model,
                               const std::string& given) {
  if (!given.empty()) sources.templates = {tokenizer::read_given_template(given)};
  if (sources.templates.empty())
    throw Error(ErrorKind::kNotFound, "this model comes without a chat template")
        .in(model)
        .expected(
            "chat_template.jinja, chat_template in tokenizer_config.json, or the key "
            "tokenizer.chat_template of a GGUF file")
        .found("none of them")
        .fix("give one: " + Setting::kChatTemplate + " chatml, or a file");
  return tokenizer::ChatTemplate(sources);
}

}  // namespace

tokenizer::ChatTemplate open_chat_template(const std::string& model, const std::string& given) {
  check_model_name(model);
  std::error_code ignored;
  const bool plain = std::filesystem::is_directory(model, ignored) &&
                     !std::filesystem::exists(model + "/manifest.json", ignored);
  return plain ? choose(tokenizer::read_chat_sources(model), model, given)
               : chat_template_of(*store::open_checkpoint(model), given);
}

tokenizer::ChatTemplate chat_template_of(const store::Checkpoint& model, const std::string& given) {
  return choose(tokenizer::read_chat_sources(model), model.path(), given);
}

}  // namespace sluice::app
