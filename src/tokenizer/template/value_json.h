// JSON of template values. Objects keep the order of their members, which base/json sorts.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "tokenizer/template/value.h"

namespace sluice::tokenizer::jinja {

// Reads a whole text. Strings have this origin; members of objects are in the order of the text, and the
// last of equal keys counts. Containers cannot be changed by a template. Fault naming the byte: bad syntax,
// text that is not UTF-8, more than 64 levels, an integer beyond 64 bits.
Value read_json(std::string_view text, Origin origin, Meter* meter = nullptr, Frozen frozen = Frozen::kYes);

struct JsonStyle {
  std::optional<std::string> indent;  // for each level; empty: all on one line
  std::optional<std::string> comma, colon;
  bool sort_keys = false, ascii = false;
};
// As json.dumps does. Fault for values that JSON does not have.
MarkedText write_json(const Value& value, const JsonStyle& style, Meter& meter);

}  // namespace sluice::tokenizer::jinja
