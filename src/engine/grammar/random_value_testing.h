// For tests of grammars: documents drawn at random. Keys that no schema names sort behind those that it
// names, as texts have them.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/json/json.h"
#include "engine/grammar/random_schema_testing.h"

namespace sluice::engine::testing {

inline Json random_value(Random& random, const Json& schema, const Json& root, int depth);

inline Json random_integer(Random& random, const Json& schema) {
  std::int64_t low = -1000, high = 1000;
  if (schema.contains("minimum")) low = schema["minimum"].get<std::int64_t>();
  if (schema.contains("exclusiveMinimum")) low = schema["exclusiveMinimum"].get<std::int64_t>() + 1;
  if (schema.contains("maximum")) high = schema["maximum"].get<std::int64_t>();
  if (schema.contains("exclusiveMaximum")) high = schema["exclusiveMaximum"].get<std::int64_t>() - 1;
  if (coin(random, 4)) return Json(coin(random) ? low : high);
  return Json(low + static_cast<std::int64_t>(
                        below(random, static_cast<std::size_t>(std::max<std::int64_t>(1, high - low)))));
}

inline Json random_string(Random& random, const Json& schema) {
  static const std::vector<std::string> kWords = {"abc", "555-1234", "foxs", "bee", "xyyzz", "zzz", "a-b",
                                                  "xab", "abab",     "Fox",  "b c", "\"a\\", "q",   "éé中"};
  return coin(random) || schema.contains("pattern") ? Json(kWords[below(random, kWords.size())])
                                                    : Json(random_text(random));
}

inline Json random_array(Random& random, const Json& schema, const Json& root, int depth) {
  const auto inner = [&](const Json& one) { return random_value(random, one, root, depth + 1); };
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

inline Json random_object(Random& random, const Json& schema, const Json& root, int depth) {
  const auto inner = [&](const Json& one) { return random_value(random, one, root, depth + 1); };
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
  if (type == "integer") return random_integer(random, schema);
  if (type == "string") return random_string(random, schema);
  if (type == "array") return random_array(random, schema, root, depth);
  if (type == "object") return random_object(random, schema, root, depth);
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
