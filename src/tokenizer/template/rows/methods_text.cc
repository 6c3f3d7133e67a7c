// Methods of strings.
#include <fmt/format.h>

#include <algorithm>

#include "tokenizer/template/characters.h"
#include "tokenizer/template/number_text.h"
#include "tokenizer/template/rows.h"
#include "tokenizer/template/rows/text_search.h"
#include "tokenizer/template/value_text.h"
#include "tokenizer/text/utf8.h"

namespace sluice::tokenizer::jinja {
namespace {

using A = const Bound&;
using V = const Value&;

Value split_parts(Render& render, std::vector<MarkedText> parts) {
  std::vector<Value> items;
  for (MarkedText& part : parts) items.push_back(render.text(std::move(part)));
  return render.list(std::move(items));
}

Value split(Render& render, V self, A arguments, Side side) {
  const std::int64_t most = arguments.integer(1, -1);
  if (!arguments.given_some(0)) return split_parts(render, split_at_space(self.text(), most, side));
  if (arguments.text(0).empty()) throw Fault("split: the separator is empty");
  return split_parts(render, split_at(self.text(), arguments.text(0).bytes(), most, side));
}
Value method_split(Render& render, V self, A arguments) {
  return split(render, self, arguments, Side::kStart);
}
Value method_rsplit(Render& render, V self, A arguments) {
  return split(render, self, arguments, Side::kEnd);
}
Value method_splitlines(Render& render, V self, A arguments) {
  return split_parts(render, split_lines(self.text(), arguments.truth(0)));
}

Value strip(Render& render, V self, A arguments, bool at_start, bool at_end) {
  std::optional<std::string_view> chars;
  if (arguments.given_some(0)) chars = arguments.text(0).bytes();
  return render.text(stripped_text(self.text(), at_start, at_end, chars));
}
Value method_strip(Render& render, V self, A arguments) { return strip(render, self, arguments, true, true); }
Value method_lstrip(Render& render, V self, A arguments) {
  return strip(render, self, arguments, true, false);
}
Value method_rstrip(Render& render, V self, A arguments) {
  return strip(render, self, arguments, false, true);
}

// The bytes of the characters [arguments[1], arguments[2]), as a slice has them; `outside` if it begins
// behind the end.
struct Window {
  std::size_t begin = 0, end = 0;
  bool outside = false;
};
Window window_of(V self, A arguments) {
  const std::string_view text = self.bytes();
  Window window{0, text.size(), false};
  if (!arguments.given_some(1) && !arguments.given_some(2)) return window;
  const auto size = static_cast<std::int64_t>(count_chars(text));
  const auto bound = [&](std::size_t i, std::int64_t otherwise) {
    if (!arguments.given_some(i)) return otherwise;
    const std::int64_t at = arguments.integer(i);
    return at < 0 ? std::max<std::int64_t>(at + size, 0) : at;
  };
  const std::int64_t first = bound(1, 0), last = std::min(bound(2, size), size);
  if (first > size || first > last) return {0, 0, true};
  const auto offsets = char_offsets(text);
  return {offsets[static_cast<std::size_t>(first)], offsets[static_cast<std::size_t>(last)], false};
}

bool fits_end(std::string_view text, V wanted, bool start, std::string_view what) {
  if (wanted.is_undefined()) throw Fault(wanted.undefined_text());
  if (!wanted.is_string())
    throw Fault(fmt::format("{}: expected strings, found a value of type {}", what, wanted.type_name()));
  return start ? text.starts_with(wanted.bytes()) : text.ends_with(wanted.bytes());
}
Value has_end(V self, A arguments, bool start) {
  const Window window = window_of(self, arguments);
  if (window.outside) return false;
  const std::string_view text = self.bytes().substr(window.begin, window.end - window.begin);
  V wanted = arguments[0];
  if (!wanted.is_list() || wanted.list().kind != ListKind::kTuple)
    return fits_end(text, wanted, start, arguments.what());
  const auto& items = wanted.list().items;
  return std::any_of(items.begin(), items.end(),
                     [&](V item) { return fits_end(text, item, start, arguments.what()); });
}
Value method_startswith(Render&, V self, A arguments) { return has_end(self, arguments, true); }
Value method_endswith(Render&, V self, A arguments) { return has_end(self, arguments, false); }

Value method_replace(Render& render, V self, A arguments) {
  return render.text(replaced(self.text(), arguments.text(0).bytes(), arguments.text(1),
                              arguments.integer(2, -1), render.meter().limits().value_bytes));
}

Value method_lower(Render& render, V self, A) { return render.text(lower_case(self.text())); }
Value method_upper(Render& render, V self, A) { return render.text(upper_case(self.text())); }
Value method_title(Render& render, V self, A) { return render.text(title_case(self.text())); }
Value method_capitalize(Render& render, V self, A) { return render.text(capitalized(self.text())); }

Value method_join(Render& render, V self, A arguments) {
  if (arguments[0].is_undefined()) return render.text(MarkedText());
  MarkedText joined;
  bool first = true;
  for (const Value& item : render.iterate(arguments[0])) {
    if (item.is_undefined() || !item.is_string())
      throw Fault(fmt::format("join: expected strings, found a value of type {}", item.type_name()));
    if (!first) joined.append(self.text());
    first = false;
    joined.append(item.text());
    render.meter().check_value(joined.size());
  }
  return render.text(std::move(joined));
}

Value found_at(V self, A arguments) {
  const Window window = window_of(self, arguments);
  if (window.outside) return -1;
  const std::string_view text = self.bytes().substr(0, window.end);
  const auto found = find_text(text, arguments.text(0).bytes(), window.begin);
  if (!found) return -1;
  return static_cast<std::int64_t>(count_chars(text.substr(0, *found)));
}
Value method_find(Render&, V self, A arguments) { return found_at(self, arguments); }
Value method_index(Render&, V self, A arguments) {
  Value found = found_at(self, arguments);
  if (found.integer() < 0) throw Fault("index: the string is not there");
  return found;
}

Value method_count(Render&, V self, A arguments) {
  const Window window = window_of(self, arguments);
  if (window.outside) return 0;
  const std::string_view text = self.bytes().substr(window.begin, window.end - window.begin);
  const std::string_view wanted = arguments.text(0).bytes();
  if (wanted.empty()) return static_cast<std::int64_t>(count_chars(text)) + 1;
  std::int64_t count = 0;
  for (auto at = find_text(text, wanted); at; at = find_text(text, wanted, *at + wanted.size())) ++count;
  return count;
}

Value method_zfill(Render& render, V self, A arguments) {
  const MarkedText& text = self.text();
  const std::int64_t missing = arguments.integer(0) - static_cast<std::int64_t>(count_chars(text.bytes()));
  if (missing <= 0) return self;
  render.meter().check_value(static_cast<std::size_t>(missing));
  const std::size_t sign = !text.empty() && (text.bytes()[0] == '-' || text.bytes()[0] == '+') ? 1 : 0;
  MarkedText filled = text.part(0, sign);
  filled.append(std::string(static_cast<std::size_t>(missing), '0'), Origin::kTemplate);
  filled.append(text, sign, text.size());
  return render.text(std::move(filled));
}

Value method_removeprefix(Render& render, V self, A arguments) {
  const std::string_view prefix = arguments.text(0).bytes();
  if (!self.bytes().starts_with(prefix)) return self;
  return render.text(self.text().part(prefix.size(), self.text().size()));
}
Value method_removesuffix(Render& render, V self, A arguments) {
  const std::string_view suffix = arguments.text(0).bytes();
  if (!self.bytes().ends_with(suffix)) return self;
  return render.text(self.text().part(0, self.text().size() - suffix.size()));
}

Value all_chars(V self, bool (*fits)(char32_t)) {
  const std::string_view text = self.bytes();
  for (std::size_t at = 0; at < text.size();) {
    const CodePoint c = decode_valid_utf8(text.substr(at));
    if (!fits(c.value)) return false;
    at += c.length;
  }
  return !text.empty();
}
Value method_isdigit(Render&, V self, A) { return all_chars(self, is_digit_char); }
Value method_isalpha(Render&, V self, A) { return all_chars(self, is_letter); }
Value method_isspace(Render&, V self, A) { return all_chars(self, is_space); }

// One field of str.format, "0", "name" or "name[key]", without its braces.
Value format_field(Render& render, std::string_view field, const Arguments& arguments, std::size_t& next) {
  const std::size_t end = field.find_first_of("[.:!");
  std::string_view first = field.substr(0, end), rest = end == field.npos ? "" : field.substr(end);
  std::optional<Value> value;
  const auto index =
      first.empty() ? std::optional<std::int64_t>(static_cast<std::int64_t>(next++)) : read_integer(first);
  if (index) {
    if (*index >= 0 && *index < std::ssize(arguments.plain))
      value = arguments.plain[static_cast<std::size_t>(*index)];
  } else {
    for (const auto& [name, one] : arguments.named)
      if (name == first) value = one;
  }
  if (!value) throw Fault(fmt::format("format: there is no argument for the field {{{}}}", field));
  while (rest.starts_with('[')) {
    const std::size_t close = rest.find(']');
    if (close == rest.npos) throw Fault(fmt::format("format: the field {{{}}} has no ]", field));
    const std::string_view key = rest.substr(1, close - 1);
    const auto number = read_integer(key);
    value = render.item(*value, number ? Value(*number) : render.text(std::string(key)));
    if (value->is_undefined()) throw Fault(value->undefined_text());
    rest.remove_prefix(close + 1);
  }
  if (!rest.empty())
    throw Fault(
        fmt::format("format: the field {{{}}} is not supported: only names and [indexes] are", field));
  return *value;
}

Value method_format(Render& render, V self, A arguments) {
  const MarkedText& text = self.text();
  const std::string_view bytes = text.bytes();
  MarkedText result;
  std::size_t next = 0;
  for (std::size_t at = 0; at < bytes.size();) {
    const char c = bytes[at];
    if (c != '{' && c != '}') {
      const std::size_t end = std::min(bytes.find_first_of("{}", at), bytes.size());
      result.append(text, at, end);
      at = end;
    } else if (at + 1 < bytes.size() && bytes[at + 1] == c) {
      result.append(text, at, at + 1);
      at += 2;
    } else {
      const std::size_t end = c == '{' ? bytes.find('}', at) : bytes.npos;
      if (end == bytes.npos) throw Fault("format: a brace stands alone");
      result.append(
          render.print(format_field(render, bytes.substr(at + 1, end - at - 1), arguments.all, next)));
      at = end + 1;
    }
    render.meter().check_value(result.size());
  }
  return render.text(std::move(result));
}

constexpr Row kTextMethods[] = {
    {"capitalize", "", method_capitalize},
    {"count", "sub start? end?", method_count},
    {"endswith", "suffix start? end?", method_endswith},
    {"find", "sub start? end?", method_find},
    {"format", "*", method_format},
    {"index", "sub start? end?", method_index},
    {"isalpha", "", method_isalpha},
    {"isdigit", "", method_isdigit},
    {"isspace", "", method_isspace},
    {"join", "iterable", method_join},
    {"lower", "", method_lower},
    {"lstrip", "chars?", method_lstrip},
    {"removeprefix", "prefix", method_removeprefix},
    {"removesuffix", "suffix", method_removesuffix},
    {"replace", "old new count?", method_replace},
    {"rsplit", "sep? maxsplit?", method_rsplit},
    {"rstrip", "chars?", method_rstrip},
    {"split", "sep? maxsplit?", method_split},
    {"splitlines", "keepends?", method_splitlines},
    {"startswith", "prefix start? end?", method_startswith},
    {"strip", "chars?", method_strip},
    {"title", "", method_title},
    {"upper", "", method_upper},
    {"zfill", "width", method_zfill},
};

}  // namespace

std::span<const Row> text_methods() { return kTextMethods; }

}  // namespace sluice::tokenizer::jinja
