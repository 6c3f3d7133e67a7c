#include "tokenizer/template/operators.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "tokenizer/template/characters.h"
#include "tokenizer/text/utf8.h"

namespace sluice::tokenizer::jinja {
namespace {

[[noreturn]] void fail_overflow() { throw Fault("an integer is beyond 64 bits"); }

std::string_view sign_of(Operator operation) {
  switch (operation) {
    case Operator::kAdd:
      return "+";
    case Operator::kSubtract:
      return "-";
    case Operator::kMultiply:
      return "*";
    case Operator::kDivide:
      return "/";
    case Operator::kFloorDivide:
      return "//";
    case Operator::kModulo:
      return "%";
    default:
      return "**";
  }
}

std::int64_t floor_quotient(std::int64_t a, std::int64_t b) {
  if (b == -1) {
    std::int64_t result = 0;
    if (__builtin_sub_overflow(std::int64_t{0}, a, &result)) fail_overflow();
    return result;
  }
  return a / b - (a % b != 0 && (a % b < 0) != (b < 0) ? 1 : 0);
}

std::int64_t floor_remainder(std::int64_t a, std::int64_t b) {
  if (b == -1) return 0;
  const std::int64_t rest = a % b;
  return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}

double floor_remainder(double a, double b) {
  double rest = std::fmod(a, b);
  if (rest != 0) {
    if ((rest < 0) != (b < 0)) rest += b;
  } else {
    rest = std::copysign(0.0, b);
  }
  return rest;
}

// As CPython: by the remainder, so that both agree.
double floor_quotient(double a, double b) {
  const double rest = std::fmod(a, b);
  double quotient = (a - rest) / b;
  if (rest != 0 && (b < 0) != (rest < 0)) quotient -= 1;
  if (quotient == 0) return std::copysign(0.0, a / b);
  const double floored = std::floor(quotient);
  return quotient - floored > 0.5 ? floored + 1 : floored;
}

Value integer_power(std::int64_t base, std::int64_t exponent) {
  if (exponent < 0) {
    if (base == 0) throw Fault("0 to a negative power");
    return std::pow(static_cast<double>(base), static_cast<double>(exponent));
  }
  std::int64_t result = 1;
  for (;;) {
    if ((exponent & 1) != 0 && __builtin_mul_overflow(result, base, &result)) fail_overflow();
    exponent >>= 1;
    if (exponent == 0) return result;
    if (__builtin_mul_overflow(base, base, &base)) {
      fail_overflow();
    }
  }
}

Value real_power(double base, double exponent) {
  if (base == 0 && exponent < 0) throw Fault("0 to a negative power");
  const double result = std::pow(base, exponent);
  if (std::isnan(result) && !std::isnan(base) && !std::isnan(exponent))
    throw Fault("a power is no real number");
  if (std::isinf(result) && !std::isinf(base) && !std::isinf(exponent)) throw Fault("a power is too large");
  return result;
}

Value numbers(Operator operation, const Value& a, const Value& b) {
  const bool real = a.is_real() || b.is_real();
  const bool divides =
      operation == Operator::kDivide || operation == Operator::kFloorDivide || operation == Operator::kModulo;
  if (divides && b.real() == 0) throw Fault("division by zero");
  std::int64_t result = 0;
  switch (operation) {
    case Operator::kAdd:
      if (real) return a.real() + b.real();
      if (__builtin_add_overflow(a.integer(), b.integer(), &result)) fail_overflow();
      return result;
    case Operator::kSubtract:
      if (real) return a.real() - b.real();
      if (__builtin_sub_overflow(a.integer(), b.integer(), &result)) fail_overflow();
      return result;
    case Operator::kMultiply:
      if (real) return a.real() * b.real();
      if (__builtin_mul_overflow(a.integer(), b.integer(), &result)) fail_overflow();
      return result;
    case Operator::kDivide:
      return a.real() / b.real();
    case Operator::kFloorDivide:
      if (real) return floor_quotient(a.real(), b.real());
      return floor_quotient(a.integer(), b.integer());
    case Operator::kModulo:
      if (real) return floor_remainder(a.real(), b.real());
      return floor_remainder(a.integer(), b.integer());
    default:
      if (real) return real_power(a.real(), b.real());
      return integer_power(a.integer(), b.integer());
  }
}

bool is_joinable(const Value& value) {
  return value.is_list() && (value.list().kind == ListKind::kList || value.list().kind == ListKind::kTuple);
}

Value repeated(const Value& value, std::int64_t times, Meter& meter) {
  const std::size_t count = times < 0 ? 0 : static_cast<std::size_t>(times);
  const std::size_t bytes = value.is_string() ? std::max<std::size_t>(value.text().size(), 1)
                                              : (value.list().items.size() + 1) * sizeof(Value);
  if (count > meter.limits().value_bytes / bytes) meter.check_value(meter.limits().value_bytes + 1);
  if (value.is_string()) {
    // Doubled as often as possible.
    MarkedText text = value.text().part(0, count == 0 ? 0 : value.text().size());
    const std::size_t whole = value.text().size() * count;
    while (text.size() < whole) text.append(MarkedText(text), 0, std::min(text.size(), whole - text.size()));
    return make_text(&meter, std::move(text));
  }
  std::vector<Value> items;
  for (std::size_t i = 0; i < count; ++i)
    items.insert(items.end(), value.list().items.begin(), value.list().items.end());
  return make_list(&meter, std::move(items), value.list().kind);
}

// The places that a slice visits, of `size`: the first, and how many.
struct Visit {
  std::int64_t first = 0, count = 0, step = 1;
};

Visit visit_of(const SliceBounds& bounds, std::int64_t size) {
  const std::int64_t step = bounds.step.value_or(1);
  if (step == 0) throw Fault("the step of a slice is 0");
  const std::int64_t low = step < 0 ? -1 : 0, high = step < 0 ? size - 1 : size;
  const auto clamped = [&](std::int64_t at) {
    if (at < 0) at = at < -size ? low : at + size;
    return std::clamp(at, low, std::max(low, high));
  };
  const std::int64_t start = bounds.start ? clamped(*bounds.start) : step < 0 ? high : low;
  const std::int64_t stop = bounds.stop ? clamped(*bounds.stop) : step < 0 ? low : high;
  const std::int64_t way = step < 0 ? start - stop : stop - start;
  if (way <= 0) return {start, 0, step};
  const std::uint64_t stride =
      step < 0 ? std::uint64_t{0} - static_cast<std::uint64_t>(step) : static_cast<std::uint64_t>(step);
  return {start, static_cast<std::int64_t>((static_cast<std::uint64_t>(way) - 1) / stride) + 1, step};
}

// Offset of character `index` of the text.
std::size_t offset_of(std::string_view text, std::int64_t index) {
  std::size_t at = 0;
  for (; index > 0 && at < text.size(); --index) {
    ++at;
    while (at < text.size() && (text[at] & 0xC0) == 0x80) ++at;
  }
  return at;
}

Value sliced_text(const MarkedText& text, const SliceBounds& bounds, Meter& meter) {
  meter.work(text.size());
  const Visit visit = visit_of(bounds, static_cast<std::int64_t>(count_chars(text.bytes())));
  if (visit.count == 0) return make_text(&meter, MarkedText());
  if (visit.step == 1) {
    const std::size_t begin = offset_of(text.bytes(), visit.first);
    const std::size_t end = begin + offset_of(std::string_view(text.bytes()).substr(begin), visit.count);
    return make_text(&meter, text.part(begin, end));
  }
  const std::vector<std::size_t> offsets = char_offsets(text.bytes());
  MarkedText result;
  for (std::int64_t i = 0; i < visit.count; ++i) {
    const auto at = static_cast<std::size_t>(visit.first + i * visit.step);
    result.append(text, offsets[at], offsets[at + 1]);
  }
  return make_text(&meter, std::move(result));
}

}  // namespace

Value binary(Operator operation, const Value& a, const Value& b, Meter& meter) {
  for (const Value* value : {&a, &b})
    if (value->is_undefined()) throw Fault(value->undefined_text());
  if (a.is_number() && b.is_number()) return numbers(operation, a, b);
  if (operation == Operator::kAdd && a.is_string() && b.is_string()) {
    meter.check_value(a.text().size() + b.text().size());
    if (a.is_markup() || b.is_markup()) {
      MarkedText joined = a.is_markup() ? a.text() : html_escaped(a.text());
      joined.append(b.is_markup() ? b.text() : html_escaped(b.text()));
      return Value::markup(&meter, std::move(joined));
    }
    MarkedText joined = a.text();
    joined.append(b.text());
    return make_text(&meter, std::move(joined));
  }
  if (operation == Operator::kAdd && is_joinable(a) && is_joinable(b) && a.list().kind == b.list().kind) {
    std::vector<Value> items = a.list().items;
    items.insert(items.end(), b.list().items.begin(), b.list().items.end());
    return make_list(&meter, std::move(items), a.list().kind);
  }
  const auto counts = [](const Value& value) { return value.is_integer() || value.is_boolean(); };
  if (operation == Operator::kMultiply) {
    if ((a.is_string() || is_joinable(a)) && counts(b)) return repeated(a, b.integer(), meter);
    if ((b.is_string() || is_joinable(b)) && counts(a)) return repeated(b, a.integer(), meter);
  }
  throw Fault(fmt::format("types {} and {} do not fit the operator {}", a.type_name(), b.type_name(),
                          sign_of(operation)));
}

Value unary(Operator operation, const Value& value) {
  if (value.is_undefined()) throw Fault(value.undefined_text());
  if (!value.is_number()) throw Fault(fmt::format("a value of type {} has no sign", value.type_name()));
  if (value.is_real()) return operation == Operator::kNegate ? -value.real() : value.real();
  std::int64_t result = value.integer();
  if (operation == Operator::kNegate && __builtin_sub_overflow(std::int64_t{0}, result, &result))
    fail_overflow();
  return result;
}

Value sliced(const Value& value, const SliceBounds& bounds, Meter& meter) {
  if (value.is_undefined()) throw Fault(value.undefined_text());
  if (value.is_string()) return sliced_text(value.text(), bounds, meter);
  if (!value.is_list() || !value.list().is_sequence())
    throw Fault(fmt::format("a value of type {} cannot be sliced", value.type_name()));
  const List& list = value.list();
  const Visit visit = visit_of(bounds, static_cast<std::int64_t>(list.items.size()));
  std::vector<Value> items;
  for (std::int64_t i = 0; i < visit.count; ++i)
    items.push_back(list.items[static_cast<std::size_t>(visit.first + i * visit.step)]);
  return make_list(&meter, std::move(items), list.kind);
}

std::optional<Value> element(const Value& value, std::int64_t index, Meter& meter) {
  if (value.is_string()) {
    const std::string_view text = value.bytes();
    meter.work(text.size());
    const auto size = static_cast<std::int64_t>(count_chars(text));
    if (index < 0) index += size;
    if (index < 0 || index >= size) return std::nullopt;
    const std::size_t begin = offset_of(text, index);
    const std::size_t end = begin + decode_valid_utf8(text.substr(begin)).length;
    return make_text(&meter, value.text().part(begin, end));
  }
  const auto& items = value.list().items;
  if (index < 0) index += static_cast<std::int64_t>(items.size());
  if (index < 0 || index >= static_cast<std::int64_t>(items.size())) return std::nullopt;
  return items[static_cast<std::size_t>(index)];
}

Value make_range(std::int64_t start, std::int64_t stop, std::int64_t step, Meter& meter) {
  if (step == 0) throw Fault("the step of a range is 0");
  std::vector<Value> items;
  const std::size_t most = meter.limits().range_items;
  for (std::int64_t at = start; step > 0 ? at < stop : at > stop;) {
    if (items.size() == most) throw Fault(fmt::format("a range has more than {} items", most));
    items.emplace_back(at);
    if (__builtin_add_overflow(at, step, &at)) break;
  }
  return make_list(&meter, std::move(items), ListKind::kRange);
}

}  // namespace sluice::tokenizer::jinja
