// Filters of strings and numbers.
#include <fmt/format.h>

#include <cmath>
#include <cstdlib>

#include "tokenizer/template/characters.h"
#include "tokenizer/template/number_text.h"
#include "tokenizer/template/rows.h"
#include "tokenizer/template/rows/text_search.h"
#include "tokenizer/template/value_json.h"
#include "tokenizer/template/value_text.h"
#include "tokenizer/text/utf8.h"

namespace sluice::tokenizer::jinja {
namespace {

void append_own(MarkedText& out, std::string_view bytes) { out.append(bytes, Origin::kTemplate); }

Value filter_string(Render& render, const Value& subject, const Bound&) {
  if (subject.is_string()) return subject;
  return render.text(render.print(subject));
}

Value filter_lower(Render& render, const Value& subject, const Bound&) {
  return render.text(lower_case(render.print(subject)));
}
Value filter_upper(Render& render, const Value& subject, const Bound&) {
  return render.text(upper_case(render.print(subject)));
}
Value filter_capitalize(Render& render, const Value& subject, const Bound&) {
  return render.text(capitalized(render.print(subject)));
}
Value filter_title(Render& render, const Value& subject, const Bound&) {
  return render.text(title_words(render.print(subject)));
}

Value filter_trim(Render& render, const Value& subject, const Bound& arguments) {
  std::optional<std::string_view> chars;
  if (arguments.given_some(0)) chars = arguments.text(0).bytes();
  return render.text(stripped_text(render.print(subject), true, true, chars));
}

Value filter_replace(Render& render, const Value& subject, const Bound& arguments) {
  const std::int64_t most = arguments.given_some(2) ? arguments.integer(2) : -1;
  const MarkedText wanted = render.print(arguments[0]);
  return render.text(replaced(render.print(subject), wanted.bytes(), render.print(arguments[1]), most,
                              render.meter().limits().value_bytes));
}

Value filter_indent(Render& render, const Value& subject, const Bound& arguments) {
  if (subject.is_undefined()) throw Fault(subject.undefined_text());
  if (!subject.is_string())
    throw Fault(fmt::format("indent: expected a string, found a value of type {}", subject.type_name()));
  MarkedText indention;
  if (arguments.given(0) && arguments[0].is_string()) {
    indention = arguments.text(0);
  } else {
    const std::int64_t width = arguments.integer(0, 4);
    render.meter().check_value(width < 0 ? 0 : static_cast<std::size_t>(width));
    indention = MarkedText(std::string(static_cast<std::size_t>(std::max<std::int64_t>(width, 0)), ' '));
  }
  MarkedText with_end = subject.text();
  append_own(with_end, "\n");
  MarkedText result;
  bool first = true;
  for (const MarkedText& line : split_lines(with_end, false)) {
    if (!first) append_own(result, "\n");
    if (first ? arguments.truth(1) : !line.empty() || arguments.truth(2)) result.append(indention);
    result.append(line);
    first = false;
    render.meter().check_value(result.size());
  }
  return render.text(std::move(result));
}

Value filter_center(Render& render, const Value& subject, const Bound& arguments) {
  const MarkedText text = render.print(subject);
  const std::int64_t width = arguments.integer(0, 80);
  const auto size = static_cast<std::int64_t>(count_chars(text.bytes()));
  if (width <= size) return render.text(text);
  render.meter().check_value(static_cast<std::size_t>(width));
  const std::int64_t room = width - size;
  const std::int64_t left = room / 2 + (room & width & 1);
  MarkedText result(std::string(static_cast<std::size_t>(left), ' '));
  result.append(text);
  append_own(result, std::string(static_cast<std::size_t>(room - left), ' '));
  return render.text(std::move(result));
}

Value filter_wordcount(Render& render, const Value& subject, const Bound&) {
  const MarkedText text = render.print(subject);
  const std::string_view bytes = text.bytes();
  std::int64_t words = 0;
  bool in_word = false;
  for (std::size_t at = 0; at < bytes.size();) {
    const CodePoint c = decode_valid_utf8(bytes.substr(at));
    const bool word = is_word_char(c.value);
    if (word && !in_word) ++words;
    in_word = word;
    at += c.length;
  }
  return words;
}

Value filter_escape(Render& render, const Value& subject, const Bound&) {
  if (subject.is_markup()) return subject;
  return Value::markup(&render.meter(), html_escaped(render.print(subject)));
}

Value filter_tojson(Render& render, const Value& subject, const Bound& arguments) {
  JsonStyle style;
  style.ascii = arguments.truth(0);
  if (arguments.given_some(1)) {
    if (arguments[1].is_string()) {
      style.indent = arguments.text(1).bytes();
    } else {
      const std::int64_t width = arguments.integer(1);
      render.meter().check_value(width < 0 ? 0 : static_cast<std::size_t>(width));
      style.indent = std::string(static_cast<std::size_t>(std::max<std::int64_t>(width, 0)), ' ');
    }
  }
  if (arguments.given_some(2)) {
    const std::vector<Value> separators = render.iterate(arguments[2]);
    if (separators.size() != 2 || !separators[0].is_string() || !separators[1].is_string())
      throw Fault("tojson: expected two strings as separators");
    style.comma = separators[0].bytes();
    style.colon = separators[1].bytes();
  }
  style.sort_keys = arguments.truth(3);
  return render.text(write_json(subject, style, render.meter()));
}

Value filter_from_json(Render& render, const Value& subject, const Bound&) {
  if (subject.is_undefined()) throw Fault(subject.undefined_text());
  if (!subject.is_string())
    throw Fault(fmt::format("from_json: expected a string, found a value of type {}", subject.type_name()));
  const Origin origin = subject.text().has_request() ? Origin::kRequest : Origin::kTemplate;
  return read_json(subject.bytes(), origin, &render.meter(), Frozen::kNo);
}

Value filter_default(Render& render, const Value& subject, const Bound& arguments) {
  const bool absent = subject.is_undefined() || (arguments.truth(1) && !subject.truth());
  if (!absent) return subject;
  return arguments.given(0) ? arguments[0] : render.text(MarkedText());
}

Value filter_int(Render&, const Value& subject, const Bound& arguments) {
  if (subject.is_undefined()) throw Fault(subject.undefined_text());
  const Value otherwise = arguments.given(0) ? arguments[0] : Value(0);
  if (subject.is_integer() || subject.is_boolean()) return subject.integer();
  std::optional<double> real;
  if (subject.is_string()) {
    const auto base = static_cast<int>(arguments.integer(1, 10));
    if (const auto value = read_integer(subject.bytes(), base)) return *value;
    real = read_real(subject.bytes());
  } else if (subject.is_real()) {
    real = subject.real();
  }
  if (!real || !std::isfinite(*real)) return otherwise;
  const double whole = std::trunc(*real);
  if (std::abs(whole) >= 9.2e18) throw Fault("an integer is beyond 64 bits");
  return static_cast<std::int64_t>(whole);
}

Value filter_float(Render&, const Value& subject, const Bound& arguments) {
  if (subject.is_undefined()) throw Fault(subject.undefined_text());
  if (subject.is_number()) return subject.real();
  if (subject.is_string())
    if (const auto value = read_real(subject.bytes())) return *value;
  return arguments.given(0) ? arguments[0] : Value(0.0);
}

void check_number(const Value& subject, std::string_view what) {
  if (subject.is_undefined()) throw Fault(subject.undefined_text());
  if (!subject.is_number())
    throw Fault(fmt::format("{}: expected a number, found a value of type {}", what, subject.type_name()));
}

Value filter_abs(Render&, const Value& subject, const Bound&) {
  check_number(subject, "abs");
  if (subject.is_real()) return std::abs(subject.real());
  if (subject.integer() == INT64_MIN) throw Fault("an integer is beyond 64 bits");
  return std::abs(subject.integer());
}

// round(value, digits) of Python: the decimal that is nearest to the binary number, ties to even.
double rounded(double value, std::int64_t digits) {
  if (!std::isfinite(value)) return value;
  if (digits > 300) return value;
  if (digits >= 0)
    return std::strtod(fmt::format("{:.{}f}", value, static_cast<int>(digits)).c_str(), nullptr);
  if (digits < -308) return std::copysign(0.0, value);
  const double scale = std::pow(10.0, static_cast<double>(-digits));
  return std::nearbyint(value / scale) * scale;
}

Value filter_round(Render&, const Value& subject, const Bound& arguments) {
  check_number(subject, "round");
  const std::int64_t digits = arguments.integer(0);
  const std::string method = arguments.given(1) ? std::string(arguments.text(1).bytes()) : "common";
  if (method == "common") {
    if (subject.is_real()) return rounded(subject.real(), digits);
    if (digits >= 0) return subject.integer();
    return static_cast<std::int64_t>(rounded(subject.real(), digits));
  }
  const double scale = std::pow(10.0, static_cast<double>(digits));
  if (method == "ceil") return std::ceil(subject.real() * scale) / scale;
  if (method == "floor") return std::floor(subject.real() * scale) / scale;
  throw Fault("round: the method is common, ceil or floor");
}

Value filter_safe(Render& render, const Value& subject, const Bound&) {
  return Value::markup(&render.meter(), render.print(subject));
}

constexpr Row kTextFilters[] = {
    {"abs", "", filter_abs},
    {"capitalize", "", filter_capitalize},
    {"center", "width?", filter_center},
    {"d", "default_value? boolean?", filter_default},
    {"default", "default_value? boolean?", filter_default},
    {"e", "", filter_escape},
    {"escape", "", filter_escape},
    {"float", "default?", filter_float},
    {"from_json", "", filter_from_json},
    {"indent", "width? first? blank?", filter_indent},
    {"int", "default? base?", filter_int},
    {"lower", "", filter_lower},
    {"replace", "old new count?", filter_replace},
    {"round", "precision? method?", filter_round},
    {"safe", "", filter_safe},
    {"string", "", filter_string},
    {"title", "", filter_title},
    {"tojson", "ensure_ascii? indent? separators? sort_keys?", filter_tojson},
    {"trim", "chars?", filter_trim},
    {"upper", "", filter_upper},
    {"wordcount", "", filter_wordcount},
};

}  // namespace

std::span<const Row> text_filters() { return kTextFilters; }

}  // namespace sluice::tokenizer::jinja
