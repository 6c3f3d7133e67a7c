// For tests of grammars: schemas drawn at random.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/json/json.h"
#include "engine/grammar/schema_testing.h"

namespace sluice::engine::testing {

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

inline Json random_schema(Random& random, int depth, bool references);

inline Json random_integer_schema(Random& random) {
  Json schema = Json::object();
  schema["type"] = "integer";
  const std::int64_t low = static_cast<std::int64_t>(below(random, 400)) - 200;
  if (coin(random)) schema[coin(random) ? "minimum" : "exclusiveMinimum"] = low;
  if (coin(random))
    schema[coin(random) ? "maximum" : "exclusiveMaximum"] =
        low + 2 + static_cast<std::int64_t>(below(random, 300));
  return schema;
}

inline Json random_string_schema(Random& random) {
  Json schema = Json::object();
  schema["type"] = "string";
  const std::size_t min = below(random, 4);
  if (coin(random)) schema["minLength"] = min;
  if (coin(random)) schema["maxLength"] = min + below(random, 6);
  return schema;
}

inline Json random_array_schema(Random& random, int depth, bool references) {
  Json schema = Json::object();
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
  return schema;
}

// Some of these names, each of one letter, as properties.
inline Json random_properties(Random& random, const std::string& names, int depth, bool references) {
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
}

inline Json random_object_schema(Random& random, int depth, bool references) {
  Json schema = random_properties(random, "abcd", depth, references);
  if (coin(random))
    schema["additionalProperties"] =
        coin(random) ? Json(false) : random_schema(random, depth - 1, references);
  if (coin(random, 4)) {  // names of the whole in its order, then others
    std::string names = "ef";
    if (schema.contains("properties"))
      for (const auto& [name, one] : schema["properties"].items()) names += name;
    schema["allOf"] = Json::array({random_properties(random, names, depth, references)});
  }
  return schema;
}

inline Json random_schema(Random& random, int depth, bool references) {
  Json schema = Json::object();
  switch (below(random, depth <= 0 ? 7 : 12)) {
    case 0:
      schema["type"] = std::vector<std::string>{"null", "boolean", "number"}[below(random, 3)];
      break;
    case 1:
      return random_integer_schema(random);
    case 2:
    case 3:
      return random_string_schema(random);
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
    case 8:
      return random_array_schema(random, depth, references);
    case 9: {
      schema["anyOf"] = Json::array();
      for (std::size_t i = 1 + below(random, 3); i > 0; --i)
        schema["anyOf"].push_back(random_schema(random, depth - 1, references));
      break;
    }
    default:
      return random_object_schema(random, depth, references);
  }
  return schema;
}

}  // namespace sluice::engine::testing
