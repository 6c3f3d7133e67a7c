// Where a model's chat templates are: files beside its tokenizer, or keys of its GGUF file.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "store/checkpoint.h"

namespace sluice::tokenizer {

struct ChatSource {
  std::string name;   // "default", "tool_use", …
  std::string text;   // Jinja
  std::string place;  // file or key, for errors
};

struct ChatSources {
  std::vector<ChatSource> templates;  // none: the model has no chat template
  // Special tokens that templates know by name: {"bos_token", "<s>"}, …
  std::vector<std::pair<std::string, std::string>> tokens;
  std::string tokenizer_class;  // as Hugging Face calls it; empty: the files do not say
};

inline constexpr std::string_view kChatml = "chatml";  // the name of the template that is ours

// Those of a directory: chat_template.jinja, else chat_template of tokenizer_config.json; with templates of
// other names from additional_chat_templates/*.jinja and tokenizer_config.json. Error(kInvalid) names file
// and field of broken content.
ChatSources read_chat_sources(const std::string& directory);
// Those of a model: its files, also those that a packed store keeps, or the keys tokenizer.chat_template of a
// GGUF file.
ChatSources read_chat_sources(const store::Checkpoint& checkpoint);
// What a user names instead: "chatml", or a file. Error(kNotFound), (kIo).
ChatSource read_given_template(const std::string& file_or_chatml);

}  // namespace sluice::tokenizer
