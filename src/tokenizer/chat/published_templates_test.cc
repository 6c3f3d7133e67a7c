#include "tokenizer/chat/published_templates.h"

#include <cstdlib>
#include <filesystem>

#include "base/files/file.h"
#include "tokenizer/test_files.h"

namespace sluice::tokenizer::test {

const Json& chat_goldens() {
  static const Json all = Json::parse(unpack_zstd("tests/golden/chat/templates.json.zst"));
  return all;
}

std::vector<std::string> published_template_names() {
  std::vector<std::string> names;
  for (const auto& [name, entry] : chat_goldens()["templates"].items()) names.push_back(name);
  return names;
}

std::optional<std::string> published_template(const std::string& name) {
  const Json& entry = chat_goldens()["templates"][name];
  if (entry.contains("text")) return entry["text"].get<std::string>();
  const char* const directory = std::getenv("SLUICE_CHAT_TEMPLATES");
  if (directory == nullptr) return std::nullopt;
  const std::string path = std::string(directory) + "/" + name + ".jinja";
  return std::filesystem::exists(path) ? std::optional(read_text_file(path, kMiB)) : std::nullopt;
}

ChatTemplate chat_of(const std::string& text) {
  ChatSources sources;
  sources.templates.push_back({"default", text, "template"});
  sources.tokens = {{"bos_token", "<BOS>"}, {"eos_token", "<EOS>"}};
  return ChatTemplate(sources);
}

}  // namespace sluice::tokenizer::test
