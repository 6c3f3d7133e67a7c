#include "tokenizer/template/value_text.h"

#include <fmt/format.h>
#include <string.h>

#include "tokenizer/template/characters.h"
#include "tokenizer/template/number_text.h"
#include "tokenizer/text/utf8.h"

namespace sluice::tokenizer::jinja {
namespace {

void append_plain(MarkedText& out, std::string_view bytes) { out.append(bytes, Origin::kTemplate); }

void append_quoted(MarkedText& out, const MarkedText& text) {
  const bool single = text.bytes().find('\'') != std::string::npos;
  const char quote = single && text.bytes().find('"') == std::string::npos ? '"' : '\'';
  append_plain(out, {&quote, 1});
  std::string piece;
  text.each_run([&](std::string_view run, Origin origin) {
    piece.clear();
    for (std::size_t i = 0; i < run.size();) {
      const CodePoint c = decode_valid_utf8(run.substr(i));
      if (c.value == '\\' || c.value == static_cast<char32_t>(quote)) {
        piece += '\\';
        piece += static_cast<char>(c.value);
      } else if (c.value == '\n') {
        piece += "\\n";
      } else if (c.value == '\r') {
        piece += "\\r";
      } else if (c.value == '\t') {
        piece += "\\t";
      } else if (is_printable(c.value)) {
        piece += run.substr(i, c.length);
      } else if (c.value < 0x100) {
        piece += fmt::format("\\x{:02x}", static_cast<std::uint32_t>(c.value));
      } else if (c.value < 0x10000) {
        piece += fmt::format("\\u{:04x}", static_cast<std::uint32_t>(c.value));
      } else {
        piece += fmt::format("\\U{:08x}", static_cast<std::uint32_t>(c.value));
      }
      i += c.length;
    }
    out.append(piece, origin);
  });
  append_plain(out, {&quote, 1});
}

class Printer {
 public:
  explicit Printer(Meter& meter) : meter_(meter) {}

  void print(const Value& value) {
    meter_.step();
    meter_.check_value(out.size());
    if (value.is_none()) return append_plain(out, "None");
    if (value.is_boolean()) return append_plain(out, value.boolean() ? "True" : "False");
    if (value.is_integer()) return append_plain(out, std::to_string(value.integer()));
    if (value.is_real()) return append_plain(out, real_text(value.real()));
    if (value.is_markup()) append_plain(out, "Markup(");
    if (value.is_string()) append_quoted(out, value.text());
    if (value.is_markup()) append_plain(out, ")");
    if (value.is_string()) return;
    if (value.is_undefined()) return append_plain(out, "Undefined");
    if (value.is_loop())
      return append_plain(
          out, fmt::format("<LoopContext {}/{}>", value.loop().index0 + 1, value.loop().items.size()));
    if (value.is_callable()) return append_plain(out, value.callable().shown());
    if (++depth_ > meter_.limits().nesting)
      throw Fault(fmt::format("values nest more than {} deep", meter_.limits().nesting));
    if (value.is_list()) {
      print_list(value.list());
    } else {
      print_dict(value.dict());
    }
    --depth_;
  }

  MarkedText out;

 private:
  void print_list(const List& list) {
    switch (list.kind) {
      case ListKind::kList:
      case ListKind::kTuple:
        break;
      case ListKind::kRange:
        return print_range(list);
      case ListKind::kKeys:
        append_plain(out, "dict_keys(");
        break;
      case ListKind::kValues:
        append_plain(out, "dict_values(");
        break;
      case ListKind::kItems:
        append_plain(out, "dict_items(");
        break;
      case ListKind::kIterator:
        return append_plain(out, "<generator>");
    }
    const bool tuple = list.kind == ListKind::kTuple;
    append_plain(out, tuple ? "(" : "[");
    for (std::size_t i = 0; i < list.items.size(); ++i) {
      if (i > 0) append_plain(out, ", ");
      print(list.items[i]);
    }
    if (tuple && list.items.size() == 1) append_plain(out, ",");
    append_plain(out, tuple ? ")" : "]");
    if (!list.is_sequence()) append_plain(out, ")");
  }

  void print_range(const List& list) {
    const auto at = [&](std::size_t i) { return list.items[i].integer(); };
    const std::int64_t first = list.items.empty() ? 0 : at(0);
    const std::int64_t step = list.items.size() < 2 ? 1 : at(1) - first;
    const std::int64_t stop = list.items.empty() ? 0 : at(list.items.size() - 1) + step;
    append_plain(out, step == 1 ? fmt::format("range({}, {})", first, stop)
                                : fmt::format("range({}, {}, {})", first, stop, step));
  }

  void print_dict(const Dict& dict) {
    append_plain(out, dict.name_space ? "<Namespace {" : "{");
    bool first = true;
    for (const auto& [key, value] : dict.members()) {
      if (!first) append_plain(out, ", ");
      first = false;
      print(key);
      append_plain(out, ": ");
      print(value);
    }
    append_plain(out, dict.name_space ? "}>" : "}");
  }

  Meter& meter_;
  std::size_t depth_ = 0;
};

// Deeper values cannot be made but by changing containers that hold each other.
class Nesting {
 public:
  explicit Nesting(Meter& meter) : meter_(meter) { meter_.enter(); }
  ~Nesting() { meter_.leave(); }

 private:
  Meter& meter_;
};

bool same_kind(const List& a, const List& b) { return a.kind == b.kind; }

}  // namespace

MarkedText printed(const Value& value, Meter& meter) {
  if (value.is_string()) return value.text();
  if (value.is_undefined()) return {};
  return represented(value, meter);
}

MarkedText represented(const Value& value, Meter& meter) {
  Printer printer(meter);
  printer.print(value);
  meter.check_value(printer.out.size());
  return std::move(printer.out);
}

bool equal(const Value& a, const Value& b, Meter& meter) {
  meter.step();
  if (a.is_number() && b.is_number()) {
    if (a.is_real() || b.is_real()) return a.real() == b.real();
    return a.integer() == b.integer();
  }
  if (a.is_string() && b.is_string()) return a.bytes() == b.bytes();
  if (a.is_none() || b.is_none()) return a.is_none() && b.is_none();
  if (a.is_undefined() || b.is_undefined()) return a.is_undefined() && b.is_undefined();
  const Nesting nesting(meter);
  if (a.is_list() && b.is_list()) {
    const List &left = a.list(), &right = b.list();
    if (&left == &right) return true;
    if (!same_kind(left, right) || left.kind == ListKind::kIterator || left.kind == ListKind::kValues ||
        left.items.size() != right.items.size())
      return false;
    for (std::size_t i = 0; i < left.items.size(); ++i)
      if (!equal(left.items[i], right.items[i], meter)) return false;
    return true;
  }
  if (a.is_mapping() && b.is_mapping()) {
    if (a.dict().members().size() != b.dict().members().size()) return false;
    for (const auto& [key, value] : a.dict().members()) {
      const Value* other = b.dict().find(key);
      if (other == nullptr || !equal(value, *other, meter)) return false;
    }
    return true;
  }
  return a.address() != nullptr && a.address() == b.address();
}

std::partial_ordering ordered(const Value& a, const Value& b, std::string_view sign, Meter& meter) {
  meter.step();
  if (a.is_number() && b.is_number()) {
    if (a.is_real() || b.is_real()) return a.real() <=> b.real();
    return a.integer() <=> b.integer();
  }
  // The order of UTF-8 is that of code points.
  if (a.is_string() && b.is_string()) return a.bytes().compare(b.bytes()) <=> 0;
  if (a.is_list() && b.is_list() && same_kind(a.list(), b.list()) &&
      (a.list().kind == ListKind::kList || a.list().kind == ListKind::kTuple)) {
    const Nesting nesting(meter);
    const auto &left = a.list().items, &right = b.list().items;
    for (std::size_t i = 0; i < left.size() && i < right.size(); ++i)
      if (!equal(left[i], right[i], meter)) return ordered(left[i], right[i], sign, meter);
    return left.size() <=> right.size();
  }
  for (const Value* value : {&a, &b})
    if (value->is_undefined()) throw Fault(value->undefined_text());
  throw Fault(
      fmt::format("values of types {} and {} have no order ({})", a.type_name(), b.type_name(), sign));
}

bool contains(const Value& container, const Value& wanted, Meter& meter) {
  if (container.is_string()) {
    if (wanted.is_undefined()) throw Fault(wanted.undefined_text());
    if (!wanted.is_string())
      throw Fault(fmt::format("`in` of a string needs a string, not a value of type {}", wanted.type_name()));
    meter.work(container.bytes().size());
    return memmem(container.bytes().data(), container.bytes().size(), wanted.bytes().data(),
                  wanted.bytes().size()) != nullptr;
  }
  if (container.is_mapping()) return container.dict().find(wanted) != nullptr;
  if (container.is_undefined()) return false;
  if (container.is_list()) {
    List& list = container.list();
    const bool iterator = list.kind == ListKind::kIterator;
    for (std::size_t i = iterator ? list.next : 0; i < list.items.size(); ++i) {
      if (iterator) list.next = i + 1;
      if (equal(list.items[i], wanted, meter)) return true;
    }
    if (!list.fault.empty()) throw Fault(list.fault);
    return false;
  }
  throw Fault(fmt::format("a value of type {} contains nothing", container.type_name()));
}

}  // namespace sluice::tokenizer::jinja
