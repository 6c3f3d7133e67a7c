#include "engine/grammar/schema_text.h"

#include <fmt/format.h>

#include "engine/grammar/code_points.h"

namespace sluice::engine {

std::string schema_text(const SchemaValue& value) {
  using Kind = SchemaValue::Kind;
  std::string text;
  switch (value.kind) {
    case Kind::kNull:
      return "null";
    case Kind::kBoolean:
      return value.boolean ? "true" : "false";
    case Kind::kInteger:
      return std::to_string(value.integer);
    case Kind::kReal:
      return fmt::format("{}", value.real);
    case Kind::kString:
      return json_string(value.text);
    case Kind::kArray:
      for (const SchemaValue& element : value.elements)
        text += (text.empty() ? "" : ",") + schema_text(element);
      return '[' + text + ']';
    case Kind::kObject:
      for (const auto& [key, member] : value.members)
        text += (text.empty() ? "" : ",") + json_string(key) + ':' + schema_text(member);
      return '{' + text + '}';
  }
  return text;
}

}  // namespace sluice::engine
