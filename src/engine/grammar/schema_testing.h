// For tests of grammars: schemas and documents drawn at random, a validator that knows nothing of
// grammars, and what leads texts through a grammar.
#pragma once

#include <algorithm>
#include <cmath>
#include <memory>
#include <random>
#include <regex>
#include <string>
#include <string_view>
#include <vector>

#include "base/json/json.h"
#include "engine/grammar/grammar_builder.h"
#include "engine/grammar/grammar_machine.h"
#include "engine/grammar/json_parts.h"
#include "engine/grammar/schema_grammar.h"

namespace sluice::engine::testing {

using Random = std::mt19937_64;

inline std::size_t below(Random& random, std::size_t count) {
  return std::uniform_int_distribution<std::size_t>(0, count - 1)(random);
}
inline bool coin(Random& random, int of = 2) { return below(random, static_cast<std::size_t>(of)) == 0; }

inline SchemaValue schema_of(const Json& json) {
  if (json.is_boolean()) return SchemaValue::of(json.get<bool>());
  if (json.is_number_integer()) return SchemaValue::of_integer(json.get<std::int64_t>());
  if (json.is_string()) return SchemaValue::of_text(json.get<std::string>());
  SchemaValue value;
  if (json.is_number()) {
    value.kind = SchemaValue::Kind::kReal;
    value.real = json.get<double>();
  } else if (json.is_array()) {
    value.kind = SchemaValue::Kind::kArray;
    for (const Json& element : json) value.elements.push_back(schema_of(element));
  } else if (json.is_object()) {
    value.kind = SchemaValue::Kind::kObject;
    for (const auto& [key, member] : json.items()) value.members.emplace_back(key, schema_of(member));
  }
  return value;
}

// `left_out`: whether the grammar holds less than the schema.
inline std::shared_ptr<const Grammar> grammar_of(const Json& schema, bool strict = false,
                                                 bool* left_out = nullptr) {
  GrammarBuilder builder;
  JsonParts parts(builder);
  const SchemaValue root = schema_of(schema);
  SchemaGrammar grammar(builder, parts, root, "schema", strict);
  const GrammarRule start = grammar.whole();
  if (left_out != nullptr) *left_out = !grammar.left_out().empty();
  builder.at("schema");
  return std::make_shared<const Grammar>(builder.build(start));
}

inline bool accepts(const Grammar& grammar, std::string_view text) {
  GrammarMachine machine(grammar);
  GrammarMachine::Set set = machine.start();
  for (const char byte : text) set = machine.step(set, static_cast<std::uint8_t>(byte));
  return machine.may_end(set);
}

// ---- The validator: the specification's words, one after the other.

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
  if (value.is_number()) {
    if (has("minimum") && value.get<double>() < schema["minimum"].get<double>()) return false;
    if (has("maximum") && value.get<double>() > schema["maximum"].get<double>()) return false;
    if (has("exclusiveMinimum") && value.get<double>() <= schema["exclusiveMinimum"].get<double>())
      return false;
    if (has("exclusiveMaximum") && value.get<double>() >= schema["exclusiveMaximum"].get<double>())
      return false;
  }
  if (value.is_string()) {
    const std::string text = value.get<std::string>();
    if (has("minLength") && characters(text) < schema["minLength"].get<std::size_t>()) return false;
    if (has("maxLength") && characters(text) > schema["maxLength"].get<std::size_t>()) return false;
    if (has("pattern") &&
        !std::regex_search(wide(text), std::wregex(wide(schema["pattern"].get<std::string>()))))
      return false;
  }
  if (value.is_array()) {
    if (has("minItems") && value.size() < schema["minItems"].get<std::size_t>()) return false;
    if (has("maxItems") && value.size() > schema["maxItems"].get<std::size_t>()) return false;
    const std::size_t prefix = has("prefixItems") ? schema["prefixItems"].size() : 0;
    for (std::size_t i = 0; i < value.size(); ++i) {
      if (i < prefix && !fits(schema["prefixItems"][i], value[i], root)) return false;
      if (i >= prefix && has("items") && !fits(schema["items"], value[i], root)) return false;
    }
  }
  if (value.is_object()) {
    if (has("required"))
      for (const Json& name : schema["required"])
        if (!value.contains(name.get<std::string>())) return false;
    for (const auto& [key, member] : value.items()) {
      const bool named = has("properties") && schema["properties"].contains(key);
      if (named && !fits(schema["properties"][key], member, root)) return false;
      if (!named && has("additionalProperties") && !fits(schema["additionalProperties"], member, root))
        return false;
    }
  }
  return true;
}

// ---- Schemas and documents. Keys that no schema names sort behind those that it names, as texts have
// them.

inline std::string random_text(Random& random) {
  static const std::vector<std::string> kPieces = {"a", "b",  "fox", " ", "\"", "\\",
                                                   "é", "中", "😀",   "7", "/"};
  std::string text;
  for (std::size_t i = below(random, 6); i > 0; --i) text += kPieces[below(random, kPieces.size())];
  return text;
}

inline Json random_scalar(Random& random) {
  switch (below(random, 6)) {
    case 0:
      return Json();
    case 1:
      return Json(coin(random));
    case 2:
      return Json(static_cast<std::int64_t>(below(random, 2001)) - 1000);
    case 3:
      return Json((2 * static_cast<double>(below(random, 2001)) - 1999) / 8);
    default:
      return Json(random_text(random));
  }
}

inline const std::vector<std::string>& patterns() {
  static const std::vector<std::string> all = {"^[a-c]+$",
                                               "^\\d{3}-\\d{4}$",
                                               "^(fox|bee)s?$",
                                               "^x?y*z{2,3}$",
                                               "a.b",
                                               "^[^0-9]{1,4}$",
                                               "^\\w+ \\w+$",
                                               "b$",
                                               "^(a|b){2,5}c?$",
                                               "^[A-Z][a-z]{0,8}$",
                                               "^\"[ab]\\\\$"};
  return all;
}

inline Json random_schema(Random& random, int depth, bool references) {
  Json schema = Json::object();
  switch (below(random, depth <= 0 ? 7 : 12)) {
    case 0:
      schema["type"] = std::vector<std::string>{"null", "boolean", "number"}[below(random, 3)];
      break;
    case 1: {
      schema["type"] = "integer";
      const std::int64_t low = static_cast<std::int64_t>(below(random, 400)) - 200;
      if (coin(random)) schema[coin(random) ? "minimum" : "exclusiveMinimum"] = low;
      if (coin(random))
        schema[coin(random) ? "maximum" : "exclusiveMaximum"] =
            low + 2 + static_cast<std::int64_t>(below(random, 300));
      break;
    }
    case 2:
    case 3: {
      schema["type"] = "string";
      const std::size_t min = below(random, 4);
      if (coin(random)) schema["minLength"] = min;
      if (coin(random)) schema["maxLength"] = min + below(random, 6);
      break;
    }
    case 4:
      schema["type"] = "string";
      schema["pattern"] = patterns()[below(random, patterns().size())];
      break;
    case 5:
      schema["enum"] = Json::array();
      for (std::size_t i = 1 + below(random, 4); i > 0; --i) schema["enum"].push_back(random_scalar(random));
      break;
    case 6:
      if (references && coin(random))
        schema["$ref"] = "#/$defs/node";
      else if (coin(random))
        schema["type"] = Json(std::vector<std::string>{"null", "string", "integer"});
      else
        schema["const"] = random_scalar(random);
      break;
    case 7:
    case 8: {
      schema["type"] = "array";
      if (coin(random)) schema["items"] = random_schema(random, depth - 1, references);
      const std::size_t min = below(random, 3);
      if (coin(random)) schema["minItems"] = min;
      if (coin(random)) schema["maxItems"] = min + below(random, 3);
      if (coin(random, 3)) {
        schema["prefixItems"] = Json::array();
        for (std::size_t i = 1 + below(random, 2); i > 0; --i)
          schema["prefixItems"].push_back(random_schema(random, depth - 1, references));
        if (coin(random)) schema["items"] = false;
      }
      break;
    }
    case 9: {
      schema["anyOf"] = Json::array();
      for (std::size_t i = 1 + below(random, 3); i > 0; --i)
        schema["anyOf"].push_back(random_schema(random, depth - 1, references));
      break;
    }
    default: {
      const auto object = [&](const std::string& names) {
        Json one = Json::object({{"type", "object"}});
        Json properties = Json::object();
        Json required = Json::array();
        for (const char name : names) {
          if (coin(random, 3)) continue;
          properties[std::string(1, name)] = random_schema(random, depth - 1, references);
          if (coin(random)) required.push_back(std::string(1, name));
        }
        if (!properties.empty()) one["properties"] = properties;
        if (!required.empty()) one["required"] = required;
        return one;
      };
      schema = object("abcd");
      if (coin(random))
        schema["additionalProperties"] =
            coin(random) ? Json(false) : random_schema(random, depth - 1, references);
      if (coin(random, 4)) {  // names of the whole in its order, then others
        std::string names = "ef";
        if (schema.contains("properties"))
          for (const auto& [name, one] : schema["properties"].items()) names += name;
        schema["allOf"] = Json::array({object(names)});
      }
    }
  }
  return schema;
}

// A value that may fit a schema.
inline Json random_value(Random& random, const Json& schema, const Json& root, int depth) {
  if (depth > 8) return random_scalar(random);
  if (schema.is_boolean()) return random_scalar(random);
  const auto inner = [&](const Json& one) { return random_value(random, one, root, depth + 1); };
  if (schema.contains("$ref")) return inner(root["$defs"]["node"]);
  if (schema.contains("const")) return schema["const"];
  if (schema.contains("enum")) return schema["enum"][below(random, schema["enum"].size())];
  if (schema.contains("anyOf")) return inner(schema["anyOf"][below(random, schema["anyOf"].size())]);
  std::string type = "null";
  if (schema.contains("type"))
    type = schema["type"].is_array() ? schema["type"][below(random, schema["type"].size())].get<std::string>()
                                     : schema["type"].get<std::string>();
  if (type == "boolean") return Json(coin(random));
  if (type == "number") return Json((2 * static_cast<double>(below(random, 2001)) - 1999) / 8);
  if (type == "integer") {
    std::int64_t low = -1000, high = 1000;
    if (schema.contains("minimum")) low = schema["minimum"].get<std::int64_t>();
    if (schema.contains("exclusiveMinimum")) low = schema["exclusiveMinimum"].get<std::int64_t>() + 1;
    if (schema.contains("maximum")) high = schema["maximum"].get<std::int64_t>();
    if (schema.contains("exclusiveMaximum")) high = schema["exclusiveMaximum"].get<std::int64_t>() - 1;
    if (coin(random, 4)) return Json(coin(random) ? low : high);
    return Json(low + static_cast<std::int64_t>(
                          below(random, static_cast<std::size_t>(std::max<std::int64_t>(1, high - low)))));
  }
  if (type == "string") {
    static const std::vector<std::string> kWords = {"abc", "555-1234", "foxs", "bee", "xyyzz", "zzz", "a-b",
                                                    "xab", "abab",     "Fox",  "b c", "\"a\\", "q",   "éé中"};
    return coin(random) || schema.contains("pattern") ? Json(kWords[below(random, kWords.size())])
                                                      : Json(random_text(random));
  }
  if (type == "array") {
    Json array = Json::array();
    std::size_t least = schema.contains("minItems") ? schema["minItems"].get<std::size_t>() : 0;
    for (std::size_t i = least + below(random, 3); i > 0; --i) {
      const std::size_t prefix = schema.contains("prefixItems") ? schema["prefixItems"].size() : 0;
      if (array.size() < prefix)
        array.push_back(inner(schema["prefixItems"][array.size()]));
      else
        array.push_back(schema.contains("items") ? inner(schema["items"]) : random_scalar(random));
    }
    return array;
  }
  if (type == "object") {
    Json object = Json::object();
    std::vector<Json> layers = {schema};
    if (schema.contains("allOf"))
      for (const Json& one : schema["allOf"]) layers.push_back(one);
    for (const Json& layer : layers) {
      if (!layer.contains("properties")) continue;
      for (const auto& [name, one] : layer["properties"].items()) {
        bool needed = false;
        if (layer.contains("required"))
          for (const Json& each : layer["required"]) needed = needed || each.get<std::string>() == name;
        if (needed || coin(random)) object[name] = inner(one);
      }
    }
    for (const char* key : {"zkkkk", "zéppp"})
      if (coin(random, 4))
        object[key] = schema.contains("additionalProperties") ? inner(schema["additionalProperties"])
                                                              : random_scalar(random);
    return object;
  }
  return Json();
}

inline void write_space(Random& random, std::string& text) {
  static const std::vector<std::string> kSpaces = {"", "", "", " ", "\n", "\n\n\t", "\n    "};
  text += kSpaces[below(random, kSpaces.size())];
}

// With space between tokens, as answers may have it.
inline void write(Random& random, const Json& value, std::string& text) {
  if (!value.is_structured()) {
    text += value.dump();
    return;
  }
  text += value.is_array() ? '[' : '{';
  bool first = true;
  const auto next = [&] {
    write_space(random, text);
    if (std::exchange(first, false)) return;
    text += ',';
    write_space(random, text);
  };
  if (value.is_array()) {
    for (const Json& element : value) {
      next();
      write(random, element, text);
    }
  } else {
    for (const auto& [key, member] : value.items()) {
      next();
      text += Json(key).dump();
      write_space(random, text);
      text += ':';
      write_space(random, text);
      write(random, member, text);
    }
  }
  write_space(random, text);
  text += value.is_array() ? ']' : '}';
}

// One part of a value is another one.
inline void change(Random& random, Json& value) {
  if (!value.is_structured() || value.empty() || coin(random, 3)) {
    value = coin(random, 4) ? Json(Json::array()) : random_scalar(random);
    return;
  }
  if (value.is_array()) {
    const std::size_t at = below(random, value.size());
    if (coin(random, 3))
      value.erase(at);
    else if (coin(random, 3))
      value.push_back(random_scalar(random));
    else
      change(random, value[at]);
    return;
  }
  std::vector<std::string> keys;
  for (const auto& [key, member] : value.items()) keys.push_back(key);
  const std::string key = keys[below(random, keys.size())];
  if (coin(random, 3))
    value.erase(key);
  else if (coin(random, 3))
    value["znnnn"] = random_scalar(random);
  else
    change(random, value[key]);
}

}  // namespace sluice::engine::testing
