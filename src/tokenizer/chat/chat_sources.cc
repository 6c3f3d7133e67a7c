#include "tokenizer/chat/chat_sources.h"

#include <algorithm>
#include <filesystem>

#include "base/error.h"
#include "base/files/file.h"
#include "base/json/json.h"
#include "tokenizer/gguf/gguf_keys.h"
#include "tokenizer/gguf/gguf_specials.h"
#include "tokenizer/gguf/gguf_tokens.h"
#include "tokenizer/template/limits.h"

namespace sluice::tokenizer {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kDefault = "default";

constexpr std::string_view kChatmlText =
    "{% for message in messages %}"
    "{{ '<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>' + '\\n' }}"
    "{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}";

bool is_file(const fs::path& path) {
  std::error_code ignored;
  return fs::is_regular_file(path, ignored);
}

// One byte more than a template may have, so that its parser tells the limit.
std::string read_template(const fs::path& path) {
  return read_text_file(path.string(), TemplateLimits{}.source_bytes + 1);
}

bool has_name(const ChatSources& sources, std::string_view name) {
  return std::ranges::any_of(sources.templates, [&](const ChatSource& one) { return one.name == name; });
}

void add_template(ChatSources& sources, ChatSource source) {
  if (!has_name(sources, source.name)) sources.templates.push_back(std::move(source));
}

// "bos_token": "<s>" or {"content": "<s>"}; keys of other kinds are no tokens.
void read_tokens(const fs::path& path, ChatSources& sources) {
  if (!is_file(path)) return;
  const Json json = read_json_file(path.string());
  const JsonObject object(json, path.string());
  for (const auto& [key, value] : object.value().items()) {
    if (!key.ends_with("_token")) continue;
    std::string content;
    if (value.is_string()) content = value.get<std::string>();
    if (value.is_object() && value.contains("content")) content = object.object(key).string("content");
    const bool known = std::ranges::any_of(sources.tokens, [&](const auto& one) { return one.first == key; });
    if (!content.empty() && !known) sources.tokens.emplace_back(key, std::move(content));
  }
}

void read_class(const fs::path& path, ChatSources& sources) {
  if (!is_file(path)) return;
  const Json json = read_json_file(path.string());
  const Json* name = JsonObject(json, path.string()).find("tokenizer_class");
  if (name != nullptr && name->is_string()) sources.tokenizer_class = name->get<std::string>();
}

void read_config_templates(const fs::path& path, ChatSources& sources) {
  if (!is_file(path)) return;
  const Json json = read_json_file(path.string());
  const JsonObject object(json, path.string());
  const Json* value = object.find("chat_template");
  if (value == nullptr) return;
  const std::string place = path.string() + ": chat_template";
  if (value->is_string()) {
    add_template(sources, {std::string(kDefault), value->get<std::string>(), place});
    return;
  }
  if (!value->is_array()) object.fail("chat_template", "a string, or an array of names and templates");
  for (const Json& one : *value) {
    const JsonObject entry(one, place);
    const std::string name = entry.string("name");
    add_template(sources, {name, entry.string("template"), place + "." + name});
  }
}

void add_gguf_token(ChatSources& sources, const GgufTokens& tokens, const char* name,
                    std::optional<TokenId> id) {
  if (id && *id >= 0 && *id < tokens.size())
    sources.tokens.emplace_back(name, std::string(tokens.content(*id)));
}

ChatSources read_gguf_sources(const store::GgufHeader& header, const std::string& path) {
  ChatSources sources;
  const GgufSpecials specials = read_gguf_specials(header, path);
  const std::string key = path + ": tokenizer.chat_template";
  if (specials.chat_template)
    sources.templates.push_back({std::string(kDefault), *specials.chat_template, key});
  for (const auto& [name, text] : specials.named_templates)
    add_template(sources, {name, text, key + "." + name});
  if (!specials.bos && !specials.eos) return sources;
  const GgufKeys keys(header, path);
  const GgufTokens tokens(keys);
  add_gguf_token(sources, tokens, "bos_token", specials.bos);
  add_gguf_token(sources, tokens, "eos_token", specials.eos);
  add_gguf_token(sources, tokens, "unk_token", tokens.id_at("tokenizer.ggml.unknown_token_id"));
  add_gguf_token(sources, tokens, "pad_token", tokens.id_at("tokenizer.ggml.padding_token_id"));
  return sources;
}

}  // namespace

ChatSources read_chat_sources(const std::string& directory) {
  ChatSources sources;
  const fs::path root(directory), config = root / "tokenizer_config.json";
  if (is_file(root / "chat_template.jinja")) {
    const fs::path file = root / "chat_template.jinja";
    sources.templates.push_back({std::string(kDefault), read_template(file), file.string()});
  }
  std::error_code ignored;
  std::vector<fs::path> more;
  for (const auto& entry : fs::directory_iterator(root / "additional_chat_templates", ignored))
    if (entry.path().extension() == ".jinja" && is_file(entry.path())) more.push_back(entry.path());
  std::ranges::sort(more);
  for (const fs::path& file : more)
    add_template(sources, {file.stem().string(), read_template(file), file.string()});
  read_config_templates(config, sources);
  read_class(config, sources);
  read_tokens(config, sources);
  read_tokens(root / "special_tokens_map.json", sources);
  return sources;
}

ChatSources read_chat_sources(const store::Checkpoint& checkpoint) {
  if (const auto header = checkpoint.gguf()) return read_gguf_sources(*header, checkpoint.path());
  checkpoint.check_files();
  return read_chat_sources(checkpoint.files_directory());
}

ChatSource read_given_template(const std::string& file_or_chatml) {
  if (file_or_chatml == kChatml)
    return {std::string(kDefault), std::string(kChatmlText), std::string(kChatml)};
  return {std::string(kDefault), read_template(file_or_chatml), file_or_chatml};
}

}  // namespace sluice::tokenizer
