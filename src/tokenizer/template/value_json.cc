#include "tokenizer/template/value_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "tokenizer/template/number_text.h"
#include "tokenizer/template/value_text.h"
#include "tokenizer/text/utf8.h"

namespace sluice::tokenizer::jinja {
namespace {

constexpr std::size_t kMostLevels = 64;

class JsonTextReader {
 public:
  JsonTextReader(std::string_view text, Origin origin, Meter* meter, Frozen frozen)
      : text_(text), origin_(origin), meter_(meter), frozen_(frozen) {}

  Value read() {
    if (const auto at = find_invalid_utf8(text_))
      throw Fault(fmt::format("JSON at byte {}: the text is not UTF-8", *at));
    Value value = read_value();
    skip_blanks();
    if (at_ < text_.size()) fail("text follows the value");
    return value;
  }

 private:
  [[noreturn]] void fail(std::string_view what) const {
    throw Fault(fmt::format("JSON at byte {}: {}", at_, what));
  }
  void skip_blanks() {
    while (at_ < text_.size() &&
           (text_[at_] == ' ' || text_[at_] == '\t' || text_[at_] == '\n' || text_[at_] == '\r'))
      ++at_;
  }
  bool skip(char c) {
    skip_blanks();
    if (at_ == text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  bool skip_word(std::string_view word) {
    if (!text_.substr(at_).starts_with(word)) return false;
    at_ += word.size();
    return true;
  }

  Value read_value() {
    if (meter_ != nullptr) meter_->step();
    skip_blanks();
    if (at_ == text_.size()) fail("the text ends where a value is expected");
    const char c = text_[at_];
    if (c == '{' || c == '[') {
      if (++levels_ > kMostLevels) fail(fmt::format("values nest more than {} deep", kMostLevels));
      Value value = c == '{' ? read_object() : read_array();
      --levels_;
      return value;
    }
    if (c == '"') return make_text(meter_, MarkedText(read_string(), origin_));
    if (c == '-' || (c >= '0' && c <= '9')) return read_number();
    if (skip_word("true")) return true;
    if (skip_word("false")) return false;
    if (skip_word("null")) return None{};
    fail("no JSON value begins so");
  }

  Value read_object() {
    ++at_;
    auto dict = std::make_shared<Dict>(meter_, frozen_);
    if (skip('}')) return Value(std::move(dict));
    do {
      skip_blanks();
      if (at_ == text_.size() || text_[at_] != '"') fail("a key in quotes is expected");
      Value key = make_text(meter_, MarkedText(read_string(), origin_));
      if (!skip(':')) fail("\":\" is expected");
      Value value = read_value();
      dict->set(std::move(key), std::move(value));
    } while (skip(','));
    if (!skip('}')) fail("\",\" or \"}\" is expected");
    return Value(std::move(dict));
  }

  Value read_array() {
    ++at_;
    std::vector<Value> items;
    if (!skip(']')) {
      do items.push_back(read_value());
      while (skip(','));
      if (!skip(']')) fail("\",\" or \"]\" is expected");
    }
    return Value(std::make_shared<List>(meter_, ListKind::kList, std::move(items), frozen_));
  }

  char32_t read_hex() {
    if (text_.size() - at_ < 4) fail("four hexadecimal digits are expected");
    unsigned value = 0;
    const auto [end, error] = std::from_chars(text_.data() + at_, text_.data() + at_ + 4, value, 16);
    if (error != std::errc{} || end != text_.data() + at_ + 4) fail("four hexadecimal digits are expected");
    at_ += 4;
    return value;
  }

  std::string read_string() {
    std::string out;
    ++at_;
    for (;;) {
      if (at_ == text_.size()) fail("a string has no end");
      const char c = text_[at_++];
      if (c == '"') return out;
      if (static_cast<unsigned char>(c) < 0x20) fail("a string holds a control character");
      if (c != '\\') {
        out += c;
        continue;
      }
      if (at_ == text_.size()) fail("a string has no end");
      switch (text_[at_++]) {
        case '"':
          out += '"';
          break;
        case '\\':
          out += '\\';
          break;
        case '/':
          out += '/';
          break;
        case 'b':
          out += '\b';
          break;
        case 'f':
          out += '\f';
          break;
        case 'n':
          out += '\n';
          break;
        case 'r':
          out += '\r';
          break;
        case 't':
          out += '\t';
          break;
        case 'u': {
          char32_t c32 = read_hex();
          if (c32 >= 0xD800 && c32 < 0xDC00 && skip_word("\\u")) {
            const char32_t low = read_hex();
            if (low < 0xDC00 || low > 0xDFFF) fail("half of a character");
            c32 = 0x10000 + ((c32 - 0xD800) << 10) + (low - 0xDC00);
          }
          if (c32 >= 0xD800 && c32 < 0xE000) fail("half of a character");
          append_utf8(out, c32);
          break;
        }
        default:
          fail("an unknown escape in a string");
      }
    }
  }

  Value read_number() {
    const std::size_t begin = at_;
    if (text_[at_] == '-') ++at_;
    const auto digits = [&] {
      const std::size_t first = at_;
      while (at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9') ++at_;
      if (at_ == first) fail("a digit is expected");
    };
    const std::size_t whole = at_;
    digits();
    if (text_[whole] == '0' && at_ > whole + 1) fail("a number begins with 0");
    bool real = false;
    if (at_ < text_.size() && text_[at_] == '.') real = true, ++at_, digits();
    if (at_ < text_.size() && (text_[at_] == 'e' || text_[at_] == 'E')) {
      real = true, ++at_;
      if (at_ < text_.size() && (text_[at_] == '+' || text_[at_] == '-')) ++at_;
      digits();
    }
    const std::string_view number = text_.substr(begin, at_ - begin);
    if (real) return read_real(number).value_or(0);
    const auto integer = read_integer(number);
    if (!integer) fail("an integer is beyond 64 bits");
    return *integer;
  }

  std::string_view text_;
  Origin origin_;
  Meter* meter_;
  Frozen frozen_;
  std::size_t at_ = 0, levels_ = 0;
};

class JsonTextWriter {
 public:
  JsonTextWriter(const JsonStyle& style, Meter& meter)
      : style_(style),
        meter_(meter),
        comma_(style.comma.value_or(style.indent ? "," : ", ")),
        colon_(style.colon.value_or(": ")) {}

  void write(const Value& value) {
    meter_.step();
    meter_.check_value(out.size());
    if (value.is_none()) return plain("null");
    if (value.is_boolean()) return plain(value.boolean() ? "true" : "false");
    if (value.is_integer()) return plain(std::to_string(value.integer()));
    if (value.is_real()) return plain(real(value.real()));
    if (value.is_string()) return write_string(value.text());
    if (value.is_undefined()) throw Fault(value.undefined_text() + ", which is no JSON");
    const bool array =
        value.is_list() && (value.list().kind == ListKind::kList || value.list().kind == ListKind::kTuple);
    if (!array && !value.is_mapping())
      throw Fault(fmt::format("a value of type {} is no JSON", value.type_name()));
    if (++levels_ > kMostLevels) throw Fault(fmt::format("values nest more than {} deep", kMostLevels));
    if (array) {
      write_array(value.list());
    } else {
      write_object(value.dict());
    }
    --levels_;
  }

  MarkedText out;

 private:
  void plain(std::string_view bytes) { out.append(bytes, Origin::kTemplate); }
  static std::string real(double value) {
    if (std::isnan(value)) return "NaN";
    if (std::isinf(value)) return value < 0 ? "-Infinity" : "Infinity";
    return real_text(value);
  }

  void line(std::size_t levels) {
    if (!style_.indent) return;
    plain("\n");
    for (std::size_t i = 0; i < levels; ++i) plain(*style_.indent);
  }

  void write_string(const MarkedText& text) {
    plain("\"");
    std::string piece;
    text.each_run([&](std::string_view run, Origin origin) {
      piece.clear();
      for (std::size_t i = 0; i < run.size();) {
        const CodePoint c = decode_valid_utf8(run.substr(i));
        append_escaped(piece, c.value, run.substr(i, c.length));
        i += c.length;
      }
      out.append(piece, origin);
    });
    plain("\"");
  }

  void append_escaped(std::string& piece, char32_t c, std::string_view bytes) const {
    const auto code = static_cast<std::uint32_t>(c);
    switch (c) {
      case '"':
        piece += "\\\"";
        return;
      case '\\':
        piece += "\\\\";
        return;
      case '\n':
        piece += "\\n";
        return;
      case '\r':
        piece += "\\r";
        return;
      case '\t':
        piece += "\\t";
        return;
      case '\b':
        piece += "\\b";
        return;
      case '\f':
        piece += "\\f";
        return;
      default:
        break;
    }
    if (c >= 0x20 && (!style_.ascii || c < 0x7F)) {
      piece += bytes;
    } else if (c < 0x10000) {
      piece += fmt::format("\\u{:04x}", code);
    } else {
      piece += fmt::format("\\u{:04x}\\u{:04x}", 0xD800 + ((code - 0x10000) >> 10),
                           0xDC00 + ((code - 0x10000) & 0x3FF));
    }
  }

  void write_array(const List& list) {
    if (list.items.empty()) return plain("[]");
    plain("[");
    for (std::size_t i = 0; i < list.items.size(); ++i) {
      if (i > 0) plain(comma_);
      line(levels_);
      write(list.items[i]);
    }
    line(levels_ - 1);
    plain("]");
  }

  void write_key(const Value& key) {
    if (key.is_string()) return write_string(key.text());
    plain("\"");
    if (key.is_boolean()) {
      plain(key.boolean() ? "true" : "false");
    } else if (key.is_integer()) {
      plain(std::to_string(key.integer()));
    } else if (key.is_real()) {
      plain(real(key.real()));
    } else if (key.is_none()) {
      plain("null");
    } else {
      throw Fault(fmt::format("a value of type {} is no key of JSON", key.type_name()));
    }
    plain("\"");
  }

  void write_object(const Dict& dict) {
    if (dict.members().empty()) return plain("{}");
    std::vector<const std::pair<Value, Value>*> members;
    for (const auto& member : dict.members()) members.push_back(&member);
    if (style_.sort_keys) {
      std::stable_sort(members.begin(), members.end(), [&](const auto* a, const auto* b) {
        return ordered(a->first, b->first, "<", meter_) < 0;
      });
    }
    plain("{");
    for (std::size_t i = 0; i < members.size(); ++i) {
      if (i > 0) plain(comma_);
      line(levels_);
      write_key(members[i]->first);
      plain(colon_);
      write(members[i]->second);
    }
    line(levels_ - 1);
    plain("}");
  }

  const JsonStyle& style_;
  Meter& meter_;
  const std::string comma_, colon_;
  std::size_t levels_ = 0;
};

}  // namespace

Value read_json(std::string_view text, Origin origin, Meter* meter, Frozen frozen) {
  return JsonTextReader(text, origin, meter, frozen).read();
}

MarkedText write_json(const Value& value, const JsonStyle& style, Meter& meter) {
  JsonTextWriter writer(style, meter);
  writer.write(value);
  meter.check_value(writer.out.size());
  return std::move(writer.out);
}

}  // namespace sluice::tokenizer::jinja
