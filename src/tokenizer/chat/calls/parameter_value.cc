#include "tokenizer/chat/calls/parameter_value.h"

#include <algorithm>
#include <set>

#include "tokenizer/chat/calls/argument_text.h"
#include "tokenizer/chat/calls/json_cursor.h"

namespace sluice::tokenizer {
namespace {

constexpr int kMostLevels = 8;  // levels of schemas within anyOf

void add_type(const Json& type, std::set<std::string>& types) {
  if (type.is_string()) types.insert(type.get<std::string>());
}

// The type of a value that a schema lists.
std::string type_of(const Json& value) {
  if (value.is_string()) return "string";
  if (value.is_boolean()) return "boolean";
  if (value.is_null()) return "null";
  return value.is_number() ? "number" : value.is_array() ? "array" : "object";
}

void collect_types(const Json& schema, int level, std::set<std::string>& types) {
  if (!schema.is_object() || level > kMostLevels) return;
  if (schema.contains("type")) {
    const Json& type = schema["type"];
    add_type(type, types);
    if (type.is_array())
      for (const Json& one : type) add_type(one, types);
  } else if (schema.contains("enum") && schema["enum"].is_array()) {
    for (const Json& one : schema["enum"]) types.insert(type_of(one));
  } else if (schema.contains("const")) {
    types.insert(type_of(schema["const"]));
  }
  for (const char* const several : {"anyOf", "oneOf"})
    if (schema.contains(several) && schema[several].is_array())
      for (const Json& one : schema[several]) collect_types(one, level + 1, types);
}

std::set<std::string> types_of(const Json* tool, const std::string& name) {
  std::set<std::string> types;
  if (tool == nullptr || !tool->is_object() || !tool->contains("properties")) return types;
  const Json& properties = (*tool)["properties"];
  if (properties.is_object() && properties.contains(name)) collect_types(properties[name], 0, types);
  return types;
}

// Whether a JSON value is of one of the types.
bool is_of(std::string_view json, const std::set<std::string>& types) {
  switch (json.front()) {
    case '{':
      return types.contains("object");
    case '[':
      return types.contains("array");
    case '"':
      return types.contains("string");
    case 't':
    case 'f':
      return types.contains("boolean");
    case 'n':
      return types.contains("null");
    default:
      return types.contains("number") || types.contains("integer");
  }
}

// JSON for a word of Python.
std::string_view python_word(std::string_view text, const std::set<std::string>& types) {
  if (text == "True" && types.contains("boolean")) return "true";
  if (text == "False" && types.contains("boolean")) return "false";
  if (text == "None" && !types.empty() && (types.contains("null") || !types.contains("string")))
    return "null";
  return {};
}

}  // namespace

std::string parameter_json(std::string_view text, const Json* tool, const std::string& name,
                           std::optional<bool> is_string) {
  const std::set<std::string> types = types_of(tool, name);
  if (is_string.value_or(types.size() == 1 && types.contains("string"))) return quoted_json(text);
  std::string_view value = text;
  constexpr std::string_view kBlanks = " \t\r\n";
  const std::size_t first = value.find_first_not_of(kBlanks);
  if (first == std::string_view::npos) return quoted_json(text);
  value = value.substr(first, value.find_last_not_of(kBlanks) - first + 1);
  const bool may_be_text = types.contains("string") && !is_string;
  if (is_json(value) && !(may_be_text && (value.front() == '"' || !is_of(value, types))))
    return std::string(value);
  const std::string_view word = python_word(value, types);
  return word.empty() ? quoted_json(text) : std::string(word);
}

}  // namespace sluice::tokenizer
