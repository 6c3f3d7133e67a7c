// Strings and integers of a schema.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "engine/grammar/pattern.h"
#include "engine/grammar/schema_grammar.h"
#include "engine/grammar/schema_text.h"

namespace sluice::engine {
namespace {

using Kind = SchemaValue::Kind;

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

}  // namespace

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

}  // namespace sluice::engine
