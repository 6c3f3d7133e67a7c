// For tests of grammars: a validator that knows nothing of grammars, the specification's words one after
// the other.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <regex>
#include <string>

#include "base/json/json.h"

namespace sluice::engine::testing {

inline std::size_t characters(const std::string& text) {
  return static_cast<std::size_t>(std::ranges::count_if(
      text, [](char byte) { return (static_cast<unsigned char>(byte) & 0xC0) != 0x80; }));
}

// UTF-8 as code points, one in each element.
inline std::wstring wide(const std::string& text) {
  std::wstring result;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    if ((byte & 0xC0) == 0x80)
      result.back() = static_cast<wchar_t>(static_cast<unsigned>(result.back()) << 6 | (byte & 0x3F));
    else
      result += static_cast<wchar_t>(byte < 0x80   ? byte
                                     : byte < 0xE0 ? byte & 0x1F
                                     : byte < 0xF0 ? byte & 0xF
                                                   : byte & 7);
  }
  return result;
}

inline bool is_type(const Json& value, const std::string& type) {
  if (type == "null") return value.is_null();
  if (type == "boolean") return value.is_boolean();
  if (type == "string") return value.is_string();
  if (type == "array") return value.is_array();
  if (type == "object") return value.is_object();
  if (type == "number") return value.is_number();
  return value.is_number() && std::floor(value.get<double>()) == value.get<double>();
}

inline bool fits(const Json& schema, const Json& value, const Json& root);

// What the keywords ask for that list values, or hold schemas for the whole value.
inline bool fits_choices(const Json& schema, const Json& value, const Json& root) {
  const auto has = [&](const char* key) { return schema.contains(key); };
  if (has("const") && !(schema["const"] == value)) return false;
  if (has("enum")) {
    bool any = false;
    for (const Json& one : schema["enum"]) any = any || one == value;
    if (!any) return false;
  }
  if (has("anyOf")) {
    bool any = false;
    for (const Json& one : schema["anyOf"]) any = any || fits(one, value, root);
    if (!any) return false;
  }
  if (has("allOf"))
    for (const Json& one : schema["allOf"])
      if (!fits(one, value, root)) return false;
  return true;
}

inline bool fits_bounds(const Json& schema, const Json& value) {
  const auto has = [&](const char* key) { return schema.contains(key); };
  if (has("minimum") && value.get<double>() < schema["minimum"].get<double>()) return false;
  if (has("maximum") && value.get<double>() > schema["maximum"].get<double>()) return false;
  if (has("exclusiveMinimum") && value.get<double>() <= schema["exclusiveMinimum"].get<double>())
    return false;
  if (has("exclusiveMaximum") && value.get<double>() >= schema["exclusiveMaximum"].get<double>())
    return false;
  return true;
}

inline bool fits_text(const Json& schema, const Json& value) {
  const auto has = [&](const char* key) { return schema.contains(key); };
  const std::string text = value.get<std::string>();
  if (has("minLength") && characters(text) < schema["minLength"].get<std::size_t>()) return false;
  if (has("maxLength") && characters(text) > schema["maxLength"].get<std::size_t>()) return false;
  if (has("pattern") &&
      !std::regex_search(wide(text), std::wregex(wide(schema["pattern"].get<std::string>()))))
    return false;
  return true;
}

inline bool fits_elements(const Json& schema, const Json& value, const Json& root) {
  const auto has = [&](const char* key) { return schema.contains(key); };
  if (has("minItems") && value.size() < schema["minItems"].get<std::size_t>()) return false;
  if (has("maxItems") && value.size() > schema["maxItems"].get<std::size_t>()) return false;
  const std::size_t prefix = has("prefixItems") ? schema["prefixItems"].size() : 0;
  for (std::size_t i = 0; i < value.size(); ++i) {
    if (i < prefix && !fits(schema["prefixItems"][i], value[i], root)) return false;
    if (i >= prefix && has("items") && !fits(schema["items"], value[i], root)) return false;
  }
  return true;
}

inline bool fits_members(const Json& schema, const Json& value, const Json& root) {
  const auto has = [&](const char* key) { return schema.contains(key); };
  if (has("required"))
    for (const Json& name : schema["required"])
      if (!value.contains(name.get<std::string>())) return false;
  for (const auto& [key, member] : value.items()) {
    const bool named = has("properties") && schema["properties"].contains(key);
    if (named && !fits(schema["properties"][key], member, root)) return false;
    if (!named && has("additionalProperties") && !fits(schema["additionalProperties"], member, root))
      return false;
  }
  return true;
}

inline bool fits(const Json& schema, const Json& value, const Json& root) {
  if (schema.is_boolean()) return schema.get<bool>();
  const auto has = [&](const char* key) { return schema.contains(key); };
  if (has("$ref")) {
    const auto name = schema["$ref"].get<std::string>().substr(std::string("#/$defs/").size());
    if (!fits(root["$defs"][name], value, root)) return false;
  }
  if (has("type")) {
    const Json& type = schema["type"];
    bool any = type.is_string() && is_type(value, type.get<std::string>());
    if (type.is_array())
      for (const Json& one : type) any = any || is_type(value, one.get<std::string>());
    if (!any) return false;
  }
  if (!fits_choices(schema, value, root)) return false;
  if (value.is_number()) return fits_bounds(schema, value);
  if (value.is_string()) return fits_text(schema, value);
  if (value.is_array()) return fits_elements(schema, value, root);
  return !value.is_object() || fits_members(schema, value, root);
}

}  // namespace sluice::engine::testing
