#include "tokenizer/json/component_json.h"

#include <fmt/format.h>

#include "base/error.h"
#include "tokenizer/text/advice.h"
#include "tokenizer/text/printable.h"
#include "tokenizer/text/regex.h"
#include "tokenizer/text/utf8.h"

namespace sluice::tokenizer {
namespace {

constexpr std::size_t kMaxComponents = 64;  // the longest published pipeline has 9

std::size_t count_components(const Json& value) {
  std::size_t count = value.is_object() && value.contains("type") ? 1 : 0;
  if (!value.is_structured()) return count;
  for (const Json& child : value) count += count_components(child);
  return count;
}

}  // namespace

std::unique_ptr<Pattern> read_pattern(const JsonObject& object, std::string_view key) {
  const JsonObject pattern = object.object(key);
  if (pattern.has("Regex")) return regex_pattern(pattern.string("Regex"), pattern.name() + ".Regex");
  std::string text = pattern.string("String");
  if (text.empty()) pattern.fail("String", "a string that is not empty");
  return literal_pattern(std::move(text));
}

char32_t read_character(const JsonObject& object, std::string_view key) {
  const std::string text = object.string(key);
  const CodePoint c = decode_utf8(text);
  if (c.length == 0 || c.length != text.size()) object.fail(key, "one character");
  return c.value;
}

PrependScheme read_prepend_scheme(const JsonObject& object) {
  const bool add = object.boolean_or("add_prefix_space", true);
  if (!object.has("prepend_scheme")) return add ? PrependScheme::kAlways : PrependScheme::kNever;
  const std::string scheme = object.string("prepend_scheme");
  PrependScheme result;
  if (scheme == "always") {
    result = PrependScheme::kAlways;
  } else if (scheme == "first") {
    result = PrependScheme::kFirst;
  } else if (scheme == "never") {
    result = PrependScheme::kNever;
  } else {
    object.fail("prepend_scheme", "always, first or never");
  }
  if (!add && result != PrependScheme::kNever)
    object.fail("prepend_scheme", "never, as add_prefix_space is false");
  return result;
}

AddedToken read_added_token(const JsonObject& object) {
  AddedToken token;
  token.content = object.string("content");
  if (token.content.empty() || token.content.size() > AddedTokens::kMaxContentBytes) {
    object.fail("content", fmt::format("1 to {} bytes of text", AddedTokens::kMaxContentBytes));
  }
  token.single_word = object.boolean_or("single_word", false);
  token.lstrip = object.boolean_or("lstrip", false);
  token.rstrip = object.boolean_or("rstrip", false);
  token.special = object.boolean_or("special", false);
  token.normalized = object.boolean_or("normalized", !token.special);
  return token;
}

void require_few_components(const Json* value, const std::string& where) {
  const std::size_t count = value == nullptr ? 0 : count_components(*value);
  if (count > kMaxComponents) {
    throw Error(ErrorKind::kInvalid, "too many components")
        .in(where)
        .expected(fmt::format("at most {}", kMaxComponents))
        .found(fmt::format("{}", count))
        .fix("download the tokenizer files again");
  }
}

void throw_unsupported_type(const JsonObject& object, const std::string& type) {
  throw Error(ErrorKind::kUnsupported,
              fmt::format("component of a type that is not supported: {}", printable(type)))
      .in(object.name())
      .fix(tokens_instead_of_text());
}

JsonObject element_object(const Json& array, std::size_t i, const std::string& where) {
  return JsonObject(array[i], fmt::format("{}[{}]", where, i));
}

}  // namespace sluice::tokenizer
