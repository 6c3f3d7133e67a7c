// The tests of `is`.
#include <fmt/format.h>

#include <algorithm>

#include "tokenizer/template/characters.h"
#include "tokenizer/template/operators.h"
#include "tokenizer/template/rows.h"
#include "tokenizer/template/value_text.h"
#include "tokenizer/text/utf8.h"

namespace sluice::tokenizer::jinja {
namespace {

using A = const Bound&;
using V = const Value&;

Value is_defined(Render&, V value, A) { return !value.is_undefined(); }
Value is_undefined(Render&, V value, A) { return value.is_undefined(); }
Value is_string(Render&, V value, A) { return value.is_string(); }
Value is_none(Render&, V value, A) { return value.is_none(); }
Value is_mapping(Render&, V value, A) { return value.is_mapping(); }
Value is_iterable(Render&, V value, A) {
  return value.is_undefined() || value.is_string() || value.is_list() || value.is_mapping() ||
         value.is_loop();
}
Value is_sequence(Render&, V value, A) {
  return value.is_undefined() || value.is_string() || value.is_mapping() ||
         (value.is_list() && value.list().is_sequence());
}
Value is_number(Render&, V value, A) { return value.is_number(); }
Value is_integer(Render&, V value, A) { return value.is_integer(); }
Value is_float(Render&, V value, A) { return value.is_real(); }
Value is_boolean(Render&, V value, A) { return value.is_boolean(); }
Value is_true(Render&, V value, A) { return value.is_boolean() && value.boolean(); }
Value is_false(Render&, V value, A) { return value.is_boolean() && !value.boolean(); }
// An undefined value can be called, which is then an error.
Value is_callable(Render&, V value, A) {
  return value.is_callable() || value.is_undefined() || value.is_loop();
}

Value is_equal(Render& render, V value, A other) { return equal(value, other[0], render.meter()); }
Value is_unequal(Render& render, V value, A other) { return !equal(value, other[0], render.meter()); }
Value is_less(Render& render, V value, A other) { return ordered(value, other[0], "<", render.meter()) < 0; }
Value is_at_most(Render& render, V value, A other) {
  return ordered(value, other[0], "<=", render.meter()) <= 0;
}
Value is_greater(Render& render, V value, A other) {
  return ordered(value, other[0], ">", render.meter()) > 0;
}
Value is_at_least(Render& render, V value, A other) {
  return ordered(value, other[0], ">=", render.meter()) >= 0;
}
Value is_in(Render& render, V value, A other) { return contains(other[0], value, render.meter()); }

// Numbers and strings have no place of their own in memory: equal ones of one type are the same.
Value is_same(Render& render, V value, A other) {
  if (value.type_name() != other[0].type_name()) return false;
  if (value.is_list() || value.is_dict() || value.is_loop() || value.is_callable())
    return value.address() == other[0].address();
  return equal(value, other[0], render.meter());
}

bool divides(Render& render, V value, V divisor, std::int64_t rest) {
  return equal(binary(Operator::kModulo, value, divisor, render.meter()), rest, render.meter());
}
Value is_odd(Render& render, V value, A) { return divides(render, value, 2, 1); }
Value is_even(Render& render, V value, A) { return divides(render, value, 2, 0); }
Value is_divisible(Render& render, V value, A by) { return divides(render, value, by[0], 0); }

bool has_case(const MarkedText& text, bool upper) {
  const std::string_view bytes = text.bytes();
  bool found = false;
  for (std::size_t at = 0; at < bytes.size();) {
    const CodePoint c = decode_valid_utf8(bytes.substr(at));
    if (is_title(c.value) || (upper ? is_lower(c.value) : is_upper(c.value))) return false;
    found = found || (upper ? is_upper(c.value) : is_lower(c.value));
    at += c.length;
  }
  return found;
}
Value is_lower_text(Render& render, V value, A) { return has_case(render.print(value), false); }
Value is_upper_text(Render& render, V value, A) { return has_case(render.print(value), true); }
Value is_filter(Render&, V value, A) { return value.is_string() && find_filter(value.bytes()) != nullptr; }
Value is_test(Render&, V value, A) {
  return value.is_string() && find_row(tests(), value.bytes()) != nullptr;
}

constexpr Row kTests[] = {
    {"!=", "other", is_unequal},
    {"<", "other", is_less},
    {"<=", "other", is_at_most},
    {"==", "other", is_equal},
    {">", "other", is_greater},
    {">=", "other", is_at_least},
    {"boolean", "", is_boolean},
    {"callable", "", is_callable},
    {"defined", "", is_defined},
    {"divisibleby", "num", is_divisible},
    {"eq", "other", is_equal},
    {"equalto", "other", is_equal},
    {"even", "", is_even},
    {"false", "", is_false},
    {"filter", "", is_filter},
    {"float", "", is_float},
    {"ge", "other", is_at_least},
    {"greaterthan", "other", is_greater},
    {"gt", "other", is_greater},
    {"in", "seq", is_in},
    {"integer", "", is_integer},
    {"iterable", "", is_iterable},
    {"le", "other", is_at_most},
    {"lessthan", "other", is_less},
    {"lower", "", is_lower_text},
    {"lt", "other", is_less},
    {"mapping", "", is_mapping},
    {"ne", "other", is_unequal},
    {"none", "", is_none},
    {"number", "", is_number},
    {"odd", "", is_odd},
    {"sameas", "other", is_same},
    {"sequence", "", is_sequence},
    {"string", "", is_string},
    {"test", "", is_test},
    {"true", "", is_true},
    {"undefined", "", is_undefined},
    {"upper", "", is_upper_text},
};

}  // namespace

std::span<const Row> tests() { return kTests; }

}  // namespace sluice::tokenizer::jinja
