#include "tokenizer/tokenizer_config.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <filesystem>

#include "base/error.h"
#include "base/json/json.h"
#include "tokenizer/json/component_json.h"

namespace sluice::tokenizer {
namespace {

// A token is its content, or an object with the content. Empty if absent.
std::string read_token(const JsonObject& object, std::string_view key) {
  const Json* value = object.find(key);
  if (value == nullptr) return {};
  if (value->is_object()) return object.object(key).string("content");
  return object.string(key);
}

std::optional<bool> read_flag(const JsonObject& object, std::string_view key) {
  if (!object.has(key)) return std::nullopt;
  return object.boolean_or(key, false);
}

std::vector<AddedToken> read_added(const JsonObject& object) {
  std::vector<AddedToken> added;
  if (!object.has("added_tokens_decoder")) return added;
  const JsonObject tokens = object.object("added_tokens_decoder");
  for (const auto& [key, value] : tokens.value().items()) {
    TokenId id = -1;
    const auto [end, error] = std::from_chars(key.data(), key.data() + key.size(), id);
    if (error != std::errc{} || end != key.data() + key.size() || id < 0 || id > Vocabulary::kMaxId) {
      tokens.fail(key, fmt::format("a key that is an integer in [0, {}]", Vocabulary::kMaxId));
    }
    added.push_back(read_added_token(tokens.object(key)));
    added.back().id = id;
  }
  std::sort(added.begin(), added.end(), [](const AddedToken& a, const AddedToken& b) { return a.id < b.id; });
  return added;
}

}  // namespace

TokenizerConfig read_tokenizer_config(const std::string& path) {
  TokenizerConfig config;
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored)) return config;
  const Json json = read_json_file(path);
  const JsonObject object(json, path);
  config.tokenizer_class = object.string_or("tokenizer_class", "");
  if (config.tokenizer_class.ends_with("Fast"))
    config.tokenizer_class.resize(config.tokenizer_class.size() - 4);
  config.add_bos = read_flag(object, "add_bos_token");
  config.add_eos = read_flag(object, "add_eos_token");
  config.add_prefix_space = object.boolean_or("add_prefix_space", false);
  config.bos = read_token(object, "bos_token");
  config.eos = read_token(object, "eos_token");
  config.added = read_added(object);
  for (const std::string_view key : {"bos_token", "eos_token", "unk_token", "pad_token"}) {
    std::string token = read_token(object, key);
    if (!token.empty()) config.named.push_back(std::move(token));
  }
  if (const Json* more = object.find("additional_special_tokens")) {
    if (!more->is_array()) object.fail("additional_special_tokens", "an array");
    for (std::size_t i = 0; i < more->size(); ++i) {
      const Json& token = (*more)[i];
      if (token.is_string()) {
        config.named.push_back(token.get<std::string>());
      } else {
        config.named.push_back(
            element_object(*more, i, path + ": additional_special_tokens").string("content"));
      }
    }
  }
  for (const std::string& token : config.named) {
    if (token.size() > AddedTokens::kMaxContentBytes) {
      throw Error(ErrorKind::kInvalid, "special token is too long")
          .in(path)
          .expected(fmt::format("at most {} bytes", AddedTokens::kMaxContentBytes))
          .found(fmt::format("{}", token.size()))
          .fix("download the tokenizer files again");
    }
  }
  return config;
}

}  // namespace sluice::tokenizer
