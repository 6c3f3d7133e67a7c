// Objects of a schema.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "engine/grammar/code_points.h"
#include "engine/grammar/schema_grammar.h"

namespace sluice::engine {
namespace {

using Kind = SchemaValue::Kind;

}  // namespace

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

// Those that are named, in their order; then those that are only required.
std::vector<SchemaGrammar::Property> SchemaGrammar::properties_of(const SchemaValue& schema,
                                                                  const SchemaValue& rest,
                                                                  const std::string& path) {
  const SchemaValue* const properties = schema.find("properties");
  const SchemaValue* const required = schema.find("required");
  const auto is_required = [&](const std::string& name) {
    return required != nullptr &&
           std::ranges::any_of(required->elements, [&](const SchemaValue& one) { return one.text == name; });
  };
  std::vector<Property> all;
  if (properties != nullptr)
    for (const auto& [name, one] : properties->members)
      all.push_back({name, rule_of(one, path + ".properties." + name), is_required(name)});
  if (required != nullptr)
    for (const SchemaValue& name : required->elements)
      if (std::ranges::find(all, name.text, &Property::name) == all.end())
        all.push_back({name.text, rule_of(rest, path + ".additionalProperties"), true});
  return all;
}

GrammarPart SchemaGrammar::object_part(const SchemaValue& schema, const std::string& path) {
  const SchemaValue* const properties = schema.find("properties");
  const SchemaValue* const required = schema.find("required");
  const SchemaValue* const additional = schema.find("additionalProperties");
  const SchemaValue rest = additional == nullptr ? SchemaValue::of(true) : *additional;
  if (properties == nullptr && required == nullptr && rest.is(Kind::kBoolean) && rest.boolean)
    return builder_.call(parts_.object());
  const bool more = !rest.is(Kind::kBoolean) || rest.boolean;
  const std::vector<Property> all = properties_of(schema, rest, path);
  std::vector<std::string> names;
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
