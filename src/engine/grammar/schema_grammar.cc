#include "engine/grammar/schema_grammar.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/error.h"
#include "engine/grammar/code_points.h"
#include "engine/grammar/grammar_machine.h"
#include "engine/grammar/schema_merge.h"
#include "engine/grammar/schema_text.h"

namespace sluice::engine {
namespace {

using Kind = SchemaValue::Kind;

constexpr std::size_t kMostSchemas = 10'000;  // compiled, those that references repeat included

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

// A part of a reference with ~1 and ~0 read as the / and ~ that they stand for.
std::string unescaped(std::string_view part) {
  std::string key;
  for (std::size_t i = 0; i < part.size(); ++i) {
    const bool escape = part[i] == '~';
    key.push_back(escape && part.substr(i, 2) == "~1" ? '/' : part[i]);
    i += escape ? 1 : 0;
  }
  return key;
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
    const std::string key = unescaped(std::string_view(target).substr(i + 1, end - i - 1));
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

}  // namespace sluice::engine
