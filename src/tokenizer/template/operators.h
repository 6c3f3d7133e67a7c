// Arithmetic, and slices, as Python has them.
#pragma once

#include <optional>

#include "tokenizer/template/syntax.h"
#include "tokenizer/template/value.h"

namespace sluice::tokenizer::jinja {

// Fault for types that do not fit, division by zero, and integers beyond 64 bits.
Value binary(Operator operation, const Value& a, const Value& b, Meter& meter);
Value unary(Operator operation, const Value& value);

struct SliceBounds {
  std::optional<std::int64_t> start, stop, step;
};
// Part of a string, list, tuple or range; Fault for others and for a step of 0.
Value sliced(const Value& value, const SliceBounds& bounds, Meter& meter);
// The character or element at `index`, which counts from the end if negative; empty if there is none.
std::optional<Value> element(const Value& value, std::int64_t index, Meter& meter);
// Integers from `start` up to, or down to, before `stop`. Fault for more than the limit.
Value make_range(std::int64_t start, std::int64_t stop, std::int64_t step, Meter& meter);

}  // namespace sluice::tokenizer::jinja
