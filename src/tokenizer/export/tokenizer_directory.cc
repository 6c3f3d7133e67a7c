#include "tokenizer/export/tokenizer_directory.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <string_view>

#include "base/error.h"
#include "base/files/file.h"
#include "base/setting.h"
#include "tokenizer/json/tokenizer_document.h"

namespace sluice::tokenizer {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kNames[] = {
    "added_tokens.json", "chat_template.jinja",   "merges.txt", "special_tokens_map.json",
    "tokenizer.json",    "tokenizer_config.json", "vocab.json"};
constexpr std::string_view kTemplates = "additional_chat_templates";

[[noreturn]] void fail_without_tokenizer(const std::string& directory, std::string_view found) {
  throw Error(ErrorKind::kNotFound, "no tokenizer")
      .in(directory)
      .expected("a directory with tokenizer.json, with vocab.json and merges.txt, or with tokenizer.model")
      .found(found)
      .fix("name the directory of a model that is published with its tokenizer");
}

// tokenizer.model, and the same with a version behind it.
bool is_of_a_tokenizer(std::string_view name) {
  return std::ranges::find(kNames, name) != std::end(kNames) || name == "tokenizer.model" ||
         (name.find("tokenizer") != name.npos && name.find(".model.v") != name.npos);
}

}  // namespace

std::unique_ptr<Tokenizer> load_tokenizer_for(const std::string& directory, TokenId rows) {
  std::error_code ignored;
  if (!fs::exists(directory, ignored)) fail_without_tokenizer(directory, "nothing");
  if (!fs::is_directory(directory, ignored)) fail_without_tokenizer(directory, "a file");
  std::unique_ptr<Tokenizer> tokenizer = load_tokenizer(directory);
  if (tokenizer == nullptr) fail_without_tokenizer(directory, "none of them");
  check_rows(*tokenizer, directory, rows);
  return tokenizer;
}

void check_rows(const Tokenizer& tokenizer, const std::string& directory, TokenId rows) {
  if (tokenizer.vocab_size() <= static_cast<std::size_t>(rows)) return;
  throw Error(ErrorKind::kUsage, "the tokenizer has more tokens than the model has rows for them")
      .in(Setting::kTokenizer)
      .expected(fmt::format("at most {} tokens, the vocab_size of the config", rows))
      .found(fmt::format("{} tokens in {}", tokenizer.vocab_size(), directory))
      .fix("name the tokenizer of this model, or make vocab_size larger in the config");
}

std::vector<TokenizerFile> read_tokenizer_files(const std::string& directory) {
  std::vector<std::string> names;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(directory)) {
    const std::string name = entry.path().filename().string();
    if (is_of_a_tokenizer(name) && entry.is_regular_file(ignored)) names.push_back(name);
  }
  const fs::path templates = fs::path(directory) / kTemplates;
  for (const auto& entry : fs::directory_iterator(templates, ignored))
    if (entry.path().extension() == ".jinja" && entry.is_regular_file(ignored))
      names.push_back(fmt::format("{}/{}", kTemplates, entry.path().filename().string()));
  std::ranges::sort(names);
  std::vector<TokenizerFile> files;
  for (const std::string& name : names)
    files.push_back({name, read_text_file((fs::path(directory) / name).string(), kMaxTokenizerBytes)});
  return files;
}

}  // namespace sluice::tokenizer
