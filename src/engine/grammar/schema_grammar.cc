#include "engine/grammar/schema_grammar.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>

#include "base/error.h"
#include "engine/grammar/code_points.h"
#include "engine/grammar/grammar_machine.h"
#include "engine/grammar/pattern.h"
#include "engine/grammar/schema_merge.h"
#include "engine/grammar/schema_text.h"

namespace sluice::engine {
namespace {

using Kind = SchemaValue::Kind;

constexpr std::size_t kMostSchemas = 10'000;  // compiled, those that references repeat included

constexpr std::array<std::string_view, 23> kActing = {"type",
                                                      "properties",
                                                      "required",
                                                      "additionalProperties",
                                                      "items",
                                                      "prefixItems",
                                                      "minItems",
                                                      "maxItems",
                                                      "enum",
                                                      "const",
                                                      "anyOf",
                                                      "oneOf",
                                                      "allOf",
                                                      "$ref",
                                                      "nullable",
                                                      "minLength",
                                                      "maxLength",
                                                      "pattern",
                                                      "minimum",
                                                      "maximum",
                                                      "format",
                                                      "exclusiveMinimum",
                                                      "exclusiveMaximum"};
// A text that ignores them is no grammar of the schema, but clients may check them.
constexpr std::array<std::string_view, 4> kChecks = {"multipleOf", "uniqueItems", "minProperties",
                                                     "maxProperties"};
// Without them a text would have another form.
constexpr std::array<std::string_view, 19> kForms = {"not",
                                                     "if",
                                                     "then",
                                                     "else",
                                                     "patternProperties",
                                                     "dependencies",
                                                     "contains",
                                                     "minContains",
                                                     "maxContains",
                                                     "unevaluatedItems",
                                                     "unevaluatedProperties",
                                                     "propertyNames",
                                                     "dependentRequired",
                                                     "dependentSchemas",
                                                     "additionalItems",
                                                     "$dynamicRef",
                                                     "$recursiveRef",
                                                     "$dynamicAnchor",
                                                     "$vocabulary"};

constexpr std::array<std::pair<std::string_view, std::string_view>, 4> kFormats = {{
    {"date",
     "^[1-9]\\d{3}-(02-(0[1-9]|1\\d|2[0-8])|(0[469]|11)-(0[1-9]|[12]\\d|30)|(0[13578]|1[02])-(0[1-9]|[12]\\d|"
     "3[01]"
     "))$"},
    {"time", "^([01]\\d|2[0-3]):[0-5]\\d:[0-5]\\d(\\.\\d{1,6})?(Z|[+-]([01]\\d|2[0-3]):[0-5]\\d)$"},
    {"date-time",
     "^[1-9]\\d{3}-(02-(0[1-9]|1\\d|2[0-8])|(0[469]|11)-(0[1-9]|[12]\\d|30)|(0[13578]|1[02])-(0[1-9]|[12]\\d|"
     "3[01]"
     "))T([01]\\d|2[0-3]):[0-5]\\d:[0-5]\\d(\\.\\d{1,6})?(Z|[+-]([01]\\d|2[0-3]):[0-5]\\d)$"},
    {"uuid", "^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$"},
}};

template <std::size_t n>
bool is_one_of(const std::array<std::string_view, n>& all, std::string_view word) {
  return std::ranges::find(all, word) != all.end();
}

bool reads(const Grammar& grammar, std::string_view text) {
  GrammarMachine machine(grammar);
  GrammarMachine::Set set = machine.start();
  for (const char byte : text) set = machine.step(set, static_cast<std::uint8_t>(byte));
  return machine.may_end(set);
}

// Counts nesting while it lives.
class Deeper {
 public:
  explicit Deeper(std::size_t& depth) : depth_(depth) { ++depth_; }
  ~Deeper() { --depth_; }
  Deeper(const Deeper&) = delete;
  Deeper& operator=(const Deeper&) = delete;

 private:
  std::size_t& depth_;
};

SchemaValue without_member(const SchemaValue& schema, std::string_view key) {
  SchemaValue rest = schema;
  std::erase_if(rest.members, [&](const SchemaValue::Member& member) { return member.first == key; });
  return rest;
}

// Whether it says more than annotations.
bool acts(const SchemaValue& schema) {
  return std::ranges::any_of(schema.members, [](const auto& member) { return !is_annotation(member.first); });
}

}  // namespace

SchemaGrammar::SchemaGrammar(GrammarBuilder& builder, JsonParts& parts, const SchemaValue& root,
                             std::string path, bool strict)
    : builder_(builder), parts_(parts), root_(root), path_(std::move(path)), strict_(strict) {}

void SchemaGrammar::fail(const std::string& path, std::string_view expected, std::string_view found) const {
  throw Error(ErrorKind::kInvalid, "a schema that answers cannot be bound to")
      .in(path)
      .expected(expected)
      .found(found);
}

void SchemaGrammar::leave_out(const std::string& keyword, const std::string& path) {
  if (strict_)
    fail(path + '.' + keyword, "keywords that a grammar can hold, where strict is true",
         "the keyword \"" + keyword + '"');
  if (std::ranges::find(left_out_, keyword) == left_out_.end()) left_out_.push_back(keyword);
}

void SchemaGrammar::check_keywords(const SchemaValue& schema, const std::string& path) {
  for (const auto& [key, value] : schema.members) {
    if (is_one_of(kForms, key))
      fail(path + '.' + key, "a schema without the keyword \"" + key + '"',
           "that keyword, which is not supported");
    if (is_one_of(kChecks, key)) leave_out(key, path);
    const bool list = key == "anyOf" || key == "oneOf" || key == "allOf" || key == "enum" ||
                      key == "required" || key == "prefixItems";
    if (list && !value.is(Kind::kArray)) fail(path + '.' + key, "an array", schema_text(value));
    if (list && key != "required" && key != "prefixItems" && value.elements.empty())
      fail(path + '.' + key, "an array of at least one element", "an empty one");
    const bool text = key == "$ref" || key == "pattern" || key == "format";
    if (text && !value.is(Kind::kString)) fail(path + '.' + key, "a string", schema_text(value));
    const bool number = key == "minimum" || key == "maximum";
    if (number && !value.is_number()) fail(path + '.' + key, "a number", schema_text(value));
    if (key == "properties" && !value.is(Kind::kObject))
      fail(path + '.' + key, "an object", schema_text(value));
    if (key == "required")
      for (const SchemaValue& name : value.elements)
        if (!name.is(Kind::kString)) fail(path + '.' + key, "an array of strings", schema_text(value));
  }
}

GrammarRule SchemaGrammar::rule_of(const SchemaValue& schema, const std::string& path) {
  if (schema.is(Kind::kBoolean) && schema.boolean) return parts_.value();
  const bool any = schema.is(Kind::kObject) && !acts(schema);
  if (any) return parts_.value();
  const SchemaValue* const target = schema.find("$ref");
  if (target != nullptr && target->is(Kind::kString) && !acts(without_member(schema, "$ref")))
    return reference(target->text, path);
  return builder_.rule_of(part_of(schema, path));
}

const SchemaValue& SchemaGrammar::target_of(const SchemaValue& reference, const std::string& path) const {
  const std::string& target = reference.text;
  const std::string place = path + ".$ref";
  if (!target.starts_with('#')) fail(place, "a reference into the schema itself: #/$defs/NAME", target);
  const SchemaValue* at = &root_;
  for (std::size_t i = 1; i < target.size();) {
    if (target[i] != '/') fail(place, "a reference like #/$defs/NAME", target);
    const std::size_t end = std::min(target.find('/', i + 1), target.size());
    std::string key = target.substr(i + 1, end - i - 1);
    for (std::size_t k = 0; (k = key.find('~', k)) != std::string::npos; ++k)
      key.replace(k, 2, key.substr(k, 2) == "~1" ? "/" : "~");
    const SchemaValue* next = at->find(key);
    if (at->is(Kind::kArray) && !key.empty() && key.find_first_not_of("0123456789") == std::string::npos &&
        key.size() < 6 && static_cast<std::size_t>(std::stoul(key)) < at->elements.size())
      next = &at->elements[std::stoul(key)];
    if (next == nullptr) fail(place, "a reference to a part of the schema", target + ", which is not there");
    at = next;
    i = end;
  }
  return *at;
}

GrammarRule SchemaGrammar::reference(const std::string& target, const std::string& path) {
  if (const auto known = references_.find(target); known != references_.end()) return known->second;
  const SchemaValue& schema = target_of(SchemaValue::of_text(target), path);
  const GrammarRule rule = builder_.add_rule();
  references_[target] = rule;
  std::string place = path_ + target.substr(1);
  std::ranges::replace(place, '/', '.');
  builder_.define(rule, part_of(schema, place));
  return rule;
}

SchemaValue SchemaGrammar::resolved(const SchemaValue& schema, const std::string& path) {
  const Deeper deeper(depth_);
  if (depth_ > kMostDepth + 1)
    fail(path, "schemas nested no deeper than 32", "deeper ones, or references in a circle");
  if (++compiled_ > kMostSchemas) fail(path, "a schema of at most 10000 parts", "more");
  if (!schema.is(Kind::kObject)) {
    if (!schema.is(Kind::kBoolean)) fail(path, "an object or a boolean", schema_text(schema));
    return schema;
  }
  check_keywords(schema, path);
  if (const SchemaValue* target = schema.find("$ref")) {
    const SchemaValue whole = resolved(target_of(*target, path), path);
    return merge_schemas(without_member(whole, "$defs"), resolved(without_member(schema, "$ref"), path),
                         path);
  }
  if (const SchemaValue* all = schema.find("allOf")) {
    SchemaValue whole = without_member(schema, "allOf");
    for (std::size_t i = 0; i < all->elements.size(); ++i)
      whole = merge_schemas(whole, resolved(all->elements[i], fmt::format("{}.allOf[{}]", path, i)), path);
    return whole.find("allOf") != nullptr ? resolved(whole, path) : whole;
  }
  return schema;
}

GrammarPart SchemaGrammar::part_of(const SchemaValue& unresolved, const std::string& path) {
  const Deeper deeper(depth_);
  builder_.at(path);
  const SchemaValue schema = resolved(unresolved, path);
  if (schema.is(Kind::kBoolean)) return schema.boolean ? builder_.call(parts_.value()) : builder_.never();
  for (const char* keyword : {"anyOf", "oneOf"})
    if (schema.find(keyword) != nullptr) return alternatives(schema, keyword, path);
  if (schema.find("enum") != nullptr || schema.find("const") != nullptr) return values(schema, path);
  return typed(schema, path);
}

GrammarPart SchemaGrammar::alternatives(const SchemaValue& schema, const std::string& keyword,
                                        const std::string& path) {
  const std::vector<SchemaValue>& branches = schema.find(keyword)->elements;
  if (branches.size() > GrammarBuilder::kMostWays)
    fail(path + '.' + keyword, "at most 256 alternatives", std::to_string(branches.size()));
  const SchemaValue rest = without_member(schema, keyword);
  std::vector<GrammarPart> parts;
  for (std::size_t i = 0; i < branches.size(); ++i) {
    const std::string place = fmt::format("{}.{}[{}]", path, keyword, i);
    if (!acts(rest)) {
      parts.push_back(builder_.call(rule_of(branches[i], place)));
      continue;
    }
    parts.push_back(part_of(merge_schemas(rest, resolved(branches[i], place), place), place));
  }
  return builder_.one_of(parts);
}

GrammarPart SchemaGrammar::values(const SchemaValue& schema, const std::string& path) {
  std::vector<SchemaValue> all;
  if (const SchemaValue* list = schema.find("enum")) all = list->elements;
  if (const SchemaValue* only = schema.find("const")) {
    const bool both = schema.find("enum") != nullptr;
    const bool listed =
        std::ranges::any_of(all, [&](const SchemaValue& one) { return same_value(one, *only); });
    all.clear();
    if (!both || listed) all.push_back(*only);
  }
  const SchemaValue rest = without_member(without_member(schema, "enum"), "const");
  if (acts(rest)) {  // what the other keywords exclude
    GrammarBuilder builder;
    JsonParts parts(builder);
    SchemaGrammar inner(builder, parts, root_, path_, strict_);
    const GrammarRule rule = inner.rule_of(rest, path);
    builder.at(path);
    const Grammar grammar = builder.build(rule, GrammarBuilder::NoText::kMayBe);
    std::erase_if(all, [&](const SchemaValue& value) { return !reads(grammar, schema_text(value)); });
  }
  std::vector<std::string> texts;
  std::vector<GrammarPart> parts;
  for (const SchemaValue& value : all) {
    if (value.is(Kind::kArray) || value.is(Kind::kObject))
      parts.push_back(literal(value));
    else
      texts.push_back(schema_text(value));
  }
  parts.push_back(builder_.one_of_texts(texts));
  return builder_.one_of(parts);
}

GrammarPart SchemaGrammar::literal(const SchemaValue& value) {
  std::vector<GrammarPart> parts;
  if (value.is(Kind::kArray)) {
    parts.push_back(parts_.opening('['));
    for (const SchemaValue& element : value.elements) {
      if (parts.size() > 1) parts.push_back(parts_.between(','));
      parts.push_back(literal(element));
    }
    parts.push_back(value.elements.empty() ? builder_.text("]") : parts_.closing(']'));
  } else if (value.is(Kind::kObject)) {
    parts.push_back(parts_.opening('{'));
    for (const auto& [key, member] : value.members) {
      if (parts.size() > 1) parts.push_back(parts_.between(','));
      parts.push_back(builder_.text(json_string(key)));
      parts.push_back(parts_.between(':'));
      parts.push_back(literal(member));
    }
    parts.push_back(value.members.empty() ? builder_.text("}") : parts_.closing('}'));
  } else {
    return builder_.text(schema_text(value));
  }
  return builder_.in_order(parts);
}

// Without a type, the keywords tell it; without these, all are meant.
unsigned SchemaGrammar::types_of(const SchemaValue& schema, const std::string& path) const {
  constexpr std::array<std::pair<std::string_view, unsigned>, 7> kNames = {{{"null", kNull},
                                                                            {"boolean", kBoolean},
                                                                            {"integer", kInteger},
                                                                            {"number", kNumber},
                                                                            {"string", kString},
                                                                            {"array", kArray},
                                                                            {"object", kObject}}};
  unsigned types = 0;
  if (const SchemaValue* type = schema.find("type")) {
    const std::vector<SchemaValue> names = type->is(Kind::kArray) ? type->elements : std::vector{*type};
    for (const SchemaValue& name : names) {
      const auto known = std::ranges::find(kNames, name.text, &std::pair<std::string_view, unsigned>::first);
      if (!name.is(Kind::kString) || known == kNames.end())
        fail(path + ".type", "null, boolean, integer, number, string, array or object", schema_text(name));
      types |= known->second;
    }
  } else {
    constexpr std::array<std::pair<std::string_view, unsigned>, 14> kTold = {
        {{"properties", kObject},
         {"required", kObject},
         {"additionalProperties", kObject},
         {"items", kArray},
         {"prefixItems", kArray},
         {"minItems", kArray},
         {"maxItems", kArray},
         {"minLength", kString},
         {"maxLength", kString},
         {"pattern", kString},
         {"format", kString},
         {"minimum", kNumber},
         {"maximum", kNumber},
         {"exclusiveMinimum", kNumber}}};
    for (const auto& [keyword, told] : kTold)
      if (schema.find(keyword) != nullptr) types |= told;
    if (types == 0) types = kAll;
  }
  const SchemaValue* const nullable = schema.find("nullable");
  if (nullable != nullptr && nullable->is(Kind::kBoolean) && nullable->boolean) types |= kNull;
  return types;
}

GrammarPart SchemaGrammar::typed(const SchemaValue& schema, const std::string& path) {
  const unsigned types = types_of(schema, path);
  std::vector<GrammarPart> parts;
  if ((types & kNull) != 0) parts.push_back(builder_.text("null"));
  if ((types & kBoolean) != 0)
    parts.push_back(builder_.one_of({builder_.text("true"), builder_.text("false")}));
  if ((types & kNumber) != 0) {
    for (const char* bound : {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"})
      if (const SchemaValue* there = schema.find(bound); there != nullptr && !there->is(Kind::kBoolean))
        leave_out(bound, path);
    parts.push_back(builder_.call(parts_.number()));
  } else if ((types & kInteger) != 0) {
    parts.push_back(integer_part(schema));
  }
  if ((types & kString) != 0) parts.push_back(string_part(schema, path));
  if ((types & kArray) != 0) parts.push_back(array_part(schema, path));
  if ((types & kObject) != 0) parts.push_back(object_part(schema, path));
  return parts.size() == 1 ? parts.front() : builder_.one_of(parts);
}

GrammarPart SchemaGrammar::integer_part(const SchemaValue& schema) {
  std::optional<std::int64_t> low, high;
  // Exclusive bounds stand as numbers, or, in older schemas, as booleans beside the bound.
  const auto bound = [&](const char* inclusive, const char* exclusive, int sign,
                         std::optional<std::int64_t>& to) {
    const SchemaValue* const beside = schema.find(exclusive);
    for (const char* keyword : {inclusive, exclusive}) {
      const SchemaValue* const value = schema.find(keyword);
      if (value == nullptr || !value->is_number()) continue;
      const bool excluded =
          keyword == exclusive || (beside != nullptr && beside->is(Kind::kBoolean) && beside->boolean);
      std::int64_t edge = value->integer;
      bool whole = true;
      if (value->is(Kind::kReal)) {
        const double rounded = sign > 0 ? std::ceil(value->real) : std::floor(value->real);
        whole = rounded == value->real;
        edge = static_cast<std::int64_t>(std::clamp(rounded, -9.2e18, 9.2e18));
      }
      if (excluded && whole) edge += sign;
      if (!to || (sign > 0 ? edge > *to : edge < *to)) to = edge;
    }
  };
  bound("minimum", "exclusiveMinimum", 1, low);
  bound("maximum", "exclusiveMaximum", -1, high);
  return low || high ? parts_.integers(low, high) : builder_.call(parts_.integer());
}

std::uint32_t SchemaGrammar::count_of(const SchemaValue& schema, std::string_view keyword,
                                      std::uint32_t otherwise, const std::string& path) const {
  const SchemaValue* const value = schema.find(keyword);
  if (value == nullptr) return otherwise;
  const bool whole =
      value->is(Kind::kInteger) || (value->is(Kind::kReal) && std::floor(value->real) == value->real);
  const double number = value->is(Kind::kInteger) ? static_cast<double>(value->integer) : value->real;
  if (!whole || number < 0)
    fail(path + '.' + std::string(keyword), "a whole number, 0 or more", schema_text(*value));
  return static_cast<std::uint32_t>(std::min(number, static_cast<double>(GrammarLoop::kNoLimit)));
}

GrammarPart SchemaGrammar::string_part(const SchemaValue& schema, const std::string& path) {
  const SchemaValue* const pattern = schema.find("pattern");
  const SchemaValue* const format = schema.find("format");
  const std::uint32_t min = count_of(schema, "minLength", 0, path);
  const std::uint32_t max = count_of(schema, "maxLength", GrammarLoop::kNoLimit, path);
  std::optional<std::string> expression;
  if (pattern != nullptr) expression = pattern->text;
  if (const auto* known = format == nullptr
                              ? kFormats.end()
                              : std::ranges::find(kFormats, std::string_view(format->text),
                                                  &std::pair<std::string_view, std::string_view>::first);
      known != kFormats.end()) {
    if (expression)
      leave_out("format", path);
    else
      expression = known->second;
  }
  if (expression) {
    for (const char* bound : {"minLength", "maxLength"})
      if (schema.find(bound) != nullptr) leave_out(bound, path);
    builder_.at(path + (pattern != nullptr ? ".pattern" : ".format"));
    const GrammarPart content = pattern_part(builder_, *expression);
    builder_.at(path);
    return builder_.in_order({builder_.text("\""), content, builder_.text("\"")});
  }
  if (min == 0 && max == GrammarLoop::kNoLimit) return builder_.call(parts_.string());
  if (min > max) return builder_.never();
  return builder_.in_order(
      {builder_.text("\""), builder_.counted(parts_.character(), min, max), builder_.text("\"")});
}

GrammarPart SchemaGrammar::array_part(const SchemaValue& schema, const std::string& path) {
  const std::uint32_t min = count_of(schema, "minItems", 0, path);
  const std::uint32_t max = count_of(schema, "maxItems", GrammarLoop::kNoLimit, path);
  std::vector<SchemaValue> prefix;
  SchemaValue rest = SchemaValue::of(true);
  std::string prefix_name = "prefixItems";
  if (const SchemaValue* list = schema.find("prefixItems")) prefix = list->elements;
  if (const SchemaValue* items = schema.find("items")) {
    if (items->is(Kind::kArray)) {  // as older schemas write it
      prefix = items->elements;
      prefix_name = "items";
    } else {
      rest = *items;
    }
  }
  const GrammarPart whole = builder_.never();
  const GrammarPart open = parts_.opening('['), empty = builder_.text("]"), closed = parts_.closing(']');
  builder_.join(whole.begin, open.begin);
  builder_.join(empty.end, whole.end);
  builder_.join(closed.end, whole.end);
  if (min > max) return whole;
  GrammarState at = open.end;  // so many elements are written
  std::uint32_t written = 0;
  const auto may_close = [&] {
    if (written >= min) builder_.join(at, written == 0 ? empty.begin : closed.begin);
  };
  const auto add = [&](GrammarRule rule) {
    const GrammarPart element = builder_.call(rule);
    if (written > 0) {
      const GrammarPart comma = parts_.between(',');
      builder_.join(at, comma.begin);
      at = comma.end;
    }
    builder_.join(at, element.begin);
    at = element.end;
    ++written;
  };
  may_close();
  for (std::size_t i = 0; i < prefix.size() && written < max; ++i) {
    add(rule_of(prefix[i], fmt::format("{}.{}[{}]", path, prefix_name, i)));
    may_close();
  }
  if (written >= max || (rest.is(Kind::kBoolean) && !rest.boolean)) return whole;
  const GrammarRule item = rule_of(rest, path + ".items");
  if (written == 0) {
    add(item);
    may_close();
  }
  if (written >= max) return whole;
  const GrammarPart more = builder_.in_order({parts_.between(','), builder_.call(item)});
  const std::uint32_t left_min = min - std::min(min, written);
  const std::uint32_t left_max = max == GrammarLoop::kNoLimit ? max : max - written;
  const GrammarPart rest_part = left_min == 0 && left_max == GrammarLoop::kNoLimit
                                    ? builder_.repeated(more)
                                    : builder_.counted(builder_.rule_of(more), left_min, left_max);
  builder_.join(at, rest_part.begin);
  builder_.join(rest_part.end, closed.begin);
  return whole;
}

// A key that is none of these names: it has no escapes, which could spell one of them differently.
GrammarPart SchemaGrammar::other_key(const std::vector<std::string>& names) {
  if (names.empty()) return builder_.call(parts_.string());
  const GrammarPart whole = builder_.never();
  const GrammarPart open = builder_.text("\"");
  builder_.join(whole.begin, open.begin);
  const GrammarPart free = builder_.repeated(string_character(builder_, plain_characters()));
  const GrammarPart close = builder_.text("\"");
  builder_.join(free.end, close.begin);
  builder_.join(close.end, whole.end);
  struct Branch {
    std::map<std::uint32_t, std::size_t> next;  // among the branches
    bool ends = false;
  };
  std::vector<Branch> branches(1);
  for (const std::string& name : names) {
    std::size_t at = 0;
    const std::vector<std::uint32_t> codes = code_points(name).value_or(std::vector<std::uint32_t>{});
    for (const std::uint32_t code : codes) {
      const auto known = branches[at].next.find(code);
      if (known != branches[at].next.end()) {
        at = known->second;
        continue;
      }
      branches[at].next[code] = branches.size();
      at = branches.size();
      branches.emplace_back();
    }
    branches[at].ends = true;
  }
  std::vector<GrammarState> states;
  for (std::size_t i = 0; i < branches.size(); ++i) states.push_back(builder_.add_state());
  builder_.join(open.end, states[0]);
  for (std::size_t i = 0; i < branches.size(); ++i) {
    CodeRanges named;
    for (const auto& [code, to] : branches[i].next) {
      named.push_back({code, code});
      if (without({{code, code}}, plain_characters()).empty()) {
        const GrammarPart one = string_character(builder_, {{code, code}});
        builder_.join(states[i], one.begin);
        builder_.join(one.end, states[to]);
      }
    }
    const GrammarPart other = string_character(builder_, without(plain_characters(), named));
    builder_.join(states[i], other.begin);
    builder_.join(other.end, free.begin);
    if (!branches[i].ends) builder_.join(states[i], close.begin);
  }
  return whole;
}

GrammarPart SchemaGrammar::object_part(const SchemaValue& schema, const std::string& path) {
  struct Property {
    std::string name;
    GrammarRule rule;
    bool required;
  };
  const SchemaValue* const properties = schema.find("properties");
  const SchemaValue* const required = schema.find("required");
  const SchemaValue* const additional = schema.find("additionalProperties");
  const SchemaValue rest = additional == nullptr ? SchemaValue::of(true) : *additional;
  if (properties == nullptr && required == nullptr && rest.is(Kind::kBoolean) && rest.boolean)
    return builder_.call(parts_.object());
  const auto is_required = [&](const std::string& name) {
    return required != nullptr &&
           std::ranges::any_of(required->elements, [&](const SchemaValue& one) { return one.text == name; });
  };
  const bool more = !rest.is(Kind::kBoolean) || rest.boolean;
  std::vector<Property> all;
  std::vector<std::string> names;
  if (properties != nullptr)
    for (const auto& [name, one] : properties->members)
      all.push_back({name, rule_of(one, path + ".properties." + name), is_required(name)});
  if (required != nullptr)
    for (const SchemaValue& name : required->elements)
      if (std::ranges::find(all, name.text, &Property::name) == all.end())
        all.push_back({name.text, rule_of(rest, path + ".additionalProperties"), true});
  for (const Property& property : all) names.push_back(property.name);
  builder_.at(path);

  const GrammarPart whole = builder_.never();
  const GrammarPart open = parts_.opening('{'), empty = builder_.text("}"), closed = parts_.closing('}');
  builder_.join(whole.begin, open.begin);
  builder_.join(empty.end, whole.end);
  builder_.join(closed.end, whole.end);
  // Before each property: nothing is written yet; something is; and a comma stands behind that.
  GrammarState none = open.end, some = builder_.add_state(), next = builder_.add_state();
  const auto add_comma = [&] {
    const GrammarPart comma = parts_.between(',');
    builder_.join(some, comma.begin);
    builder_.join(comma.end, next);
  };
  for (const Property& property : all) {
    const GrammarPart member = builder_.in_order(
        {builder_.text(json_string(property.name)), parts_.between(':'), builder_.call(property.rule)});
    const GrammarState then_none = builder_.add_state(), then_some = builder_.add_state(),
                       then_next = builder_.add_state();
    add_comma();
    builder_.join(none, member.begin);
    builder_.join(next, member.begin);
    builder_.join(member.end, then_some);
    if (!property.required) {
      builder_.join(none, then_none);
      builder_.join(some, then_some);
      builder_.join(next, then_next);
    }
    none = then_none;
    some = then_some;
    next = then_next;
  }
  builder_.join(none, empty.begin);
  builder_.join(some, closed.begin);
  if (more) {
    const GrammarRule value = rule_of(rest, path + ".additionalProperties");
    const GrammarPart member =
        builder_.in_order({other_key(names), parts_.between(':'), builder_.call(value)});
    add_comma();
    builder_.join(none, member.begin);
    builder_.join(next, member.begin);
    builder_.join(member.end, some);
  }
  return whole;
}

}  // namespace sluice::engine
