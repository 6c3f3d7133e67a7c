// For tests of grammars: the grammar of a schema, and what leads texts through it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <string_view>

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

}  // namespace sluice::engine::testing
