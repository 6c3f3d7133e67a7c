// Regular expressions of JSON Schema (ECMA 262), as the content of a JSON string.
#pragma once

#include <string_view>

#include "engine/grammar/grammar_builder.h"

namespace sluice::engine {

// Alternatives, groups, classes, `. \d \w \s` and their opposites, `* + ? {m,n}`, lazy or not, and the
// anchors ^ and $ at the ends of an alternative; elsewhere, where an anchor is left out, any text may
// stand. Control characters come only where the expression names them. Error(kInvalid) in the builder's
// path: bad syntax; look-around, back references, word borders and properties of Unicode, which are not
// supported; more than 10,000 states.
GrammarPart pattern_part(GrammarBuilder& builder, std::string_view pattern);

}  // namespace sluice::engine
