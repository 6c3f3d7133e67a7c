#include "engine/grammar/schema_merge.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/error.h"

namespace sluice::engine {
namespace {

using Kind = SchemaValue::Kind;

constexpr std::array<std::string_view, 19> kAnnotations = {
    "title",         "description", "default",     "examples",        "example",
    "deprecated",    "readOnly",    "writeOnly",   "$schema",         "$id",
    "$comment",      "$defs",       "definitions", "contentEncoding", "contentMediaType",
    "contentSchema", "id",          "$anchor",     "discriminator"};
constexpr std::array<std::string_view, 6> kLeast = {"minLength",     "minItems",         "minimum",
                                                    "minProperties", "exclusiveMinimum", "minContains"};
constexpr std::array<std::string_view, 5> kMost = {"maxLength", "maxItems", "maximum", "maxProperties",
                                                   "exclusiveMaximum"};
constexpr std::size_t kMostAlternatives = 256;

template <std::size_t n>
bool is_among(const std::array<std::string_view, n>& all, std::string_view word) {
  return std::ranges::find(all, word) != all.end();
}

double number_of(const SchemaValue& value) {
  return value.is(Kind::kInteger) ? static_cast<double>(value.integer) : value.real;
}

SchemaValue both(const SchemaValue& a, const SchemaValue& b) {
  const auto any = [](const SchemaValue& schema) {
    return (schema.is(Kind::kBoolean) && schema.boolean) ||
           (schema.is(Kind::kObject) && schema.members.empty());
  };
  if (any(a) || same_value(a, b)) return b;
  if (any(b)) return a;
  return SchemaValue::object({{"allOf", SchemaValue::array({a, b})}});
}

std::vector<SchemaValue> list_of(const SchemaValue& value) {
  return value.is(Kind::kArray) ? value.elements : std::vector{value};
}

// Names of types that fit one of both lists each.
SchemaValue common_types(const SchemaValue& a, const SchemaValue& b) {
  SchemaValue common = SchemaValue::array();
  for (const SchemaValue& x : list_of(a))
    for (const SchemaValue& y : list_of(b)) {
      if (x.text == y.text) common.elements.push_back(x);
      if (x.text == "integer" && y.text == "number") common.elements.push_back(x);
      if (x.text == "number" && y.text == "integer") common.elements.push_back(y);
    }
  return common;
}

SchemaValue common_values(const SchemaValue& a, const SchemaValue& b) {
  SchemaValue common = SchemaValue::array();
  for (const SchemaValue& x : a.elements)
    if (std::ranges::any_of(b.elements, [&](const SchemaValue& y) { return same_value(x, y); }))
      common.elements.push_back(x);
  return common;
}

// What a schema says of members, or of elements, that it does not name.
SchemaValue rest_of(const SchemaValue& schema, std::string_view keyword) {
  const SchemaValue* rest = schema.find(keyword);
  return rest == nullptr ? SchemaValue::of(true) : *rest;
}

void merge_properties(const SchemaValue& a, const SchemaValue& b, SchemaValue& result) {
  const SchemaValue none = SchemaValue::object();
  const SchemaValue* const of_a = a.find("properties");
  const SchemaValue* const of_b = b.find("properties");
  const SchemaValue& left = of_a == nullptr ? none : *of_a;
  const SchemaValue& right = of_b == nullptr ? none : *of_b;
  const SchemaValue rest_a = rest_of(a, "additionalProperties"), rest_b = rest_of(b, "additionalProperties");
  SchemaValue properties = SchemaValue::object();
  for (const auto& [name, schema] : left.members) {
    const SchemaValue* const other = right.find(name);
    properties.set(name, both(schema, other == nullptr ? rest_b : *other));
  }
  for (const auto& [name, schema] : right.members)
    if (left.find(name) == nullptr) properties.set(name, both(rest_a, schema));
  if (!properties.members.empty()) result.set("properties", std::move(properties));
  result.set("additionalProperties", both(rest_a, rest_b));
}

void merge_items(const SchemaValue& a, const SchemaValue& b, SchemaValue& result) {
  const SchemaValue none = SchemaValue::array();
  const SchemaValue* const of_a = a.find("prefixItems");
  const SchemaValue* const of_b = b.find("prefixItems");
  const std::vector<SchemaValue>& left = (of_a == nullptr ? none : *of_a).elements;
  const std::vector<SchemaValue>& right = (of_b == nullptr ? none : *of_b).elements;
  const SchemaValue rest_a = rest_of(a, "items"), rest_b = rest_of(b, "items");
  SchemaValue prefix = SchemaValue::array();
  for (std::size_t i = 0; i < std::max(left.size(), right.size()); ++i)
    prefix.elements.push_back(both(i < left.size() ? left[i] : rest_a, i < right.size() ? right[i] : rest_b));
  if (!prefix.elements.empty()) result.set("prefixItems", std::move(prefix));
  result.set("items", both(rest_a, rest_b));
}

bool names_any(const SchemaValue& schema, std::initializer_list<std::string_view> keywords) {
  return std::ranges::any_of(keywords, [&](std::string_view one) { return schema.find(one) != nullptr; });
}

SchemaValue products(const SchemaValue& a, const SchemaValue& b, const std::string& path) {
  if (a.elements.size() * b.elements.size() > kMostAlternatives)
    throw Error(ErrorKind::kInvalid, "the schema has too many alternatives")
        .in(path)
        .expected("at most 256")
        .found(std::to_string(a.elements.size() * b.elements.size()));
  SchemaValue result = SchemaValue::array();
  for (const SchemaValue& x : a.elements)
    for (const SchemaValue& y : b.elements) result.elements.push_back(both(x, y));
  return result;
}

void merge_keyword(const std::string& keyword, const SchemaValue& a, const SchemaValue& b,
                   SchemaValue& result, const std::string& path) {
  if (keyword == "type") return result.set(keyword, common_types(a, b));
  if (keyword == "enum") return result.set(keyword, common_values(a, b));
  if (keyword == "const")
    return result.set("enum", common_values(SchemaValue::array({a}), SchemaValue::array({b})));
  if (keyword == "anyOf" || keyword == "oneOf") return result.set(keyword, products(a, b, path));
  if (keyword == "required") {
    SchemaValue all = a;
    for (const SchemaValue& name : b.elements)
      if (std::ranges::none_of(all.elements, [&](const SchemaValue& x) { return x.text == name.text; }))
        all.elements.push_back(name);
    return result.set(keyword, std::move(all));
  }
  if (is_among(kLeast, keyword)) return result.set(keyword, number_of(a) >= number_of(b) ? a : b);
  if (is_among(kMost, keyword)) return result.set(keyword, number_of(a) <= number_of(b) ? a : b);
  if (same_value(a, b) || is_annotation(keyword) || keyword == "format") return result.set(keyword, a);
  if (keyword == "uniqueItems" || keyword == "multipleOf") return result.set(keyword, a);
  throw Error(ErrorKind::kInvalid, "two schemas that an answer cannot be bound to at once")
      .in(path + '.' + keyword)
      .expected("one value of the keyword \"" + keyword + '"')
      .found("different ones");
}

}  // namespace

bool is_annotation(std::string_view keyword) { return is_among(kAnnotations, keyword); }

bool same_value(const SchemaValue& a, const SchemaValue& b) {
  if (a.is_number() && b.is_number()) return number_of(a) == number_of(b);
  if (a.kind != b.kind) return false;
  switch (a.kind) {
    case Kind::kBoolean:
      return a.boolean == b.boolean;
    case Kind::kString:
      return a.text == b.text;
    case Kind::kArray:
      return std::ranges::equal(a.elements, b.elements, same_value);
    case Kind::kObject:
      return a.members.size() == b.members.size() && std::ranges::all_of(a.members, [&](const auto& member) {
               const SchemaValue* const other = b.find(member.first);
               return other != nullptr && same_value(member.second, *other);
             });
    default:
      return true;
  }
}

SchemaValue merge_schemas(const SchemaValue& a, const SchemaValue& b, const std::string& path) {
  if (a.is(Kind::kBoolean)) return a.boolean ? b : a;
  if (b.is(Kind::kBoolean)) return b.boolean ? a : b;
  if (same_value(a, b)) return a;
  SchemaValue result = SchemaValue::object();
  // A constant is an enumeration of one value.
  const auto plain = [](const SchemaValue& schema) {
    SchemaValue copy = schema;
    for (auto& [key, value] : copy.members)
      if (key == "const" && schema.find("enum") == nullptr) {
        key = "enum";
        value = SchemaValue::array({value});
      }
    return copy;
  };
  const SchemaValue left = plain(a), right = plain(b);
  const std::initializer_list<std::string_view> of_objects = {"properties", "additionalProperties"};
  const std::initializer_list<std::string_view> of_arrays = {"prefixItems", "items"};
  const auto apart = [&](std::string_view keyword) {
    return std::ranges::find(of_objects, keyword) != of_objects.end() ||
           std::ranges::find(of_arrays, keyword) != of_arrays.end();
  };
  for (const auto& [key, value] : left.members) {
    if (apart(key)) continue;
    const SchemaValue* const other = right.find(key);
    if (other == nullptr)
      result.set(key, value);
    else
      merge_keyword(key, value, *other, result, path);
  }
  for (const auto& [key, value] : right.members)
    if (!apart(key) && left.find(key) == nullptr) result.set(key, value);
  if (names_any(left, of_objects) || names_any(right, of_objects)) merge_properties(left, right, result);
  if (names_any(left, of_arrays) || names_any(right, of_arrays)) merge_items(left, right, result);
  return result;
}

}  // namespace sluice::engine
