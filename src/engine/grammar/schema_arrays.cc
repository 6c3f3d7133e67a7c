// Arrays of a schema.
#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "engine/grammar/schema_grammar.h"

namespace sluice::engine {
namespace {

using Kind = SchemaValue::Kind;

}  // namespace

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
  GrammarState at = open.end;  // this many elements are written
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

}  // namespace sluice::engine
