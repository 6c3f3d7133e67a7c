#include <fmt/format.h>

#include <optional>

#include "base/error.h"
#include "tokenizer/json/component_json.h"
#include "tokenizer/text/unicode.h"

namespace sluice::tokenizer {
namespace {

SplitBehavior read_behavior(const JsonObject& object, std::optional<SplitBehavior> fallback) {
  if (fallback && !object.has("behavior")) return *fallback;
  const std::string name = object.string("behavior");
  if (name == "Removed") return SplitBehavior::kRemoved;
  if (name == "Isolated") return SplitBehavior::kIsolated;
  if (name == "MergedWithPrevious") return SplitBehavior::kMergedWithPrevious;
  if (name == "MergedWithNext") return SplitBehavior::kMergedWithNext;
  if (name == "Contiguous") return SplitBehavior::kContiguous;
  object.fail("behavior", "Removed, Isolated, MergedWithPrevious, MergedWithNext or Contiguous");
}

std::unique_ptr<PreTokenizer>
whitespace_pre_tokenizer() {  // `\w+|[^\w\s]+` of Rust's regex, the rest removed
  std::vector<std::unique_ptr<PreTokenizer>> parts;
  parts.push_back(
      split_pre_tokenizer(character_pattern(is_white_space), SplitBehavior::kRemoved, Invert::kNo));
  parts.push_back(split_pre_tokenizer(character_pattern(is_word), SplitBehavior::kContiguous, Invert::kNo));
  return sequence_pre_tokenizer(std::move(parts));
}

}  // namespace

std::unique_ptr<PreTokenizer> read_pre_tokenizer(const Json* value, const std::string& where) {
  if (value == nullptr || value->is_null()) return nullptr;
  const JsonObject object(*value, where);
  const std::string type = object.string("type");
  if (type == "Split") {
    const Invert invert = object.boolean_or("invert", false) ? Invert::kYes : Invert::kNo;
    return split_pre_tokenizer(read_pattern(object, "pattern"), read_behavior(object, std::nullopt), invert);
  }
  if (type == "ByteLevel") {
    ByteLevelOptions options;
    options.add_prefix_space = object.boolean_or("add_prefix_space", true);
    options.use_regex = object.boolean_or("use_regex", true);
    return byte_level_pre_tokenizer(options);
  }
  if (type == "Digits") {
    const bool individual = object.boolean_or("individual_digits", false);
    return split_pre_tokenizer(character_pattern(is_numeric),
                               individual ? SplitBehavior::kIsolated : SplitBehavior::kContiguous,
                               Invert::kNo);
  }
  if (type == "Punctuation") {
    return split_pre_tokenizer(character_pattern(is_punctuation),
                               read_behavior(object, SplitBehavior::kIsolated), Invert::kNo);
  }
  if (type == "Whitespace") return whitespace_pre_tokenizer();
  if (type == "WhitespaceSplit") {
    return split_pre_tokenizer(character_pattern(is_white_space), SplitBehavior::kRemoved, Invert::kNo);
  }
  if (type == "Metaspace") {
    MetaspaceOptions options;
    options.replacement = read_character(object, "replacement");
    options.prepend = read_prepend_scheme(object);
    options.split = object.boolean_or("split", true);
    return metaspace_pre_tokenizer(options);
  }
  if (type == "Sequence") {
    const Json* parts = object.find("pretokenizers");
    if (parts == nullptr || !parts->is_array()) object.fail("pretokenizers", "an array");
    std::vector<std::unique_ptr<PreTokenizer>> pre_tokenizers;
    for (std::size_t i = 0; i < parts->size(); ++i) {
      if (auto part = read_pre_tokenizer(&(*parts)[i], fmt::format("{}.pretokenizers[{}]", where, i))) {
        pre_tokenizers.push_back(std::move(part));
      }
    }
    return sequence_pre_tokenizer(std::move(pre_tokenizers));
  }
  throw_unsupported_type(object, type);
}

}  // namespace sluice::tokenizer
