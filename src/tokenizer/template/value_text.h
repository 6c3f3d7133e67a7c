// What a value prints, and comparisons: as Python does both.
#pragma once

#include <compare>
#include <optional>

#include "tokenizer/template/meter.h"
#include "tokenizer/template/value.h"

namespace sluice::tokenizer::jinja {

// str() and repr(). Strings keep their marks. Fault at a limit of `meter`.
MarkedText printed(const Value& value, Meter& meter);
MarkedText represented(const Value& value, Meter& meter);

bool equal(const Value& a, const Value& b, Meter& meter);
// Fault naming `sign` ("<") if such values have no order; unordered: one of them is not a number.
std::partial_ordering ordered(const Value& a, const Value& b, std::string_view sign, Meter& meter);
bool contains(const Value& container, const Value& wanted, Meter& meter);  // the operator `in`; Fault

}  // namespace sluice::tokenizer::jinja
