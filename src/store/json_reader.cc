#include "store/json_reader.h"

#include <fmt/format.h>

namespace sluice::store {
namespace {

constexpr std::size_t kMaxDepth = 64;

// Length of the well-formed UTF-8 sequence at `text[at]` (Unicode 15, table 3-7), or 0.
std::size_t utf8_length(std::string_view text, std::size_t at) {
  const auto byte = [&](std::size_t i) -> unsigned {
    return i < text.size() ? static_cast<unsigned char>(text[i]) : 0u;  // 0 is never a continuation
  };
  const auto continues = [&](std::size_t i, unsigned low = 0x80, unsigned high = 0xBF) {
    return byte(i) >= low && byte(i) <= high;
  };
  const unsigned lead = byte(at);
  if (lead < 0x80) return 1;
  if (lead >= 0xC2 && lead <= 0xDF) return continues(at + 1) ? 2 : 0;
  if (lead >= 0xE0 && lead <= 0xEF) {
    const unsigned low = lead == 0xE0 ? 0xA0 : 0x80, high = lead == 0xED ? 0x9F : 0xBF;
    return continues(at + 1, low, high) && continues(at + 2) ? 3 : 0;
  }
  if (lead >= 0xF0 && lead <= 0xF4) {
    const unsigned low = lead == 0xF0 ? 0x90 : 0x80, high = lead == 0xF4 ? 0x8F : 0xBF;
    return continues(at + 1, low, high) && continues(at + 2) && continues(at + 3) ? 4 : 0;
  }
  return 0;
}

void append_utf8(std::string& out, unsigned code) {
  const auto put = [&](unsigned byte) { out.push_back(static_cast<char>(byte)); };
  if (code < 0x80) {
    put(code);
  } else if (code < 0x800) {
    put(0xC0 | code >> 6);
    put(0x80 | (code & 0x3F));
  } else if (code < 0x10000) {
    put(0xE0 | code >> 12);
    put(0x80 | (code >> 6 & 0x3F));
    put(0x80 | (code & 0x3F));
  } else {
    put(0xF0 | code >> 18);
    put(0x80 | (code >> 12 & 0x3F));
    put(0x80 | (code >> 6 & 0x3F));
    put(0x80 | (code & 0x3F));
  }
}

bool is_digit(char c) { return c >= '0' && c <= '9'; }

}  // namespace

JsonReader::JsonReader(std::string_view text, std::string file, Bytes offset_bytes)
    : text_(text), file_(std::move(file)), offset_bytes_(offset_bytes) {}

Error JsonReader::error(std::string_view message) const {
  return Error(ErrorKind::kInvalid, message)
      .in(file_, offset_bytes_ + value_at_)
      .fix("download the file again");
}

void JsonReader::fail(std::string_view message, std::string_view expected) const {
  std::string found = "the end of the text";
  if (at_ < text_.size()) {
    const auto c = static_cast<unsigned char>(text_[at_]);
    found = c >= 0x20 && c < 0x7F ? fmt::format("'{}'", text_[at_]) : fmt::format("byte 0x{:02x}", c);
  }
  throw Error(ErrorKind::kInvalid, message)
      .in(file_, offset())
      .expected(expected)
      .found(found)
      .fix("download the file again");
}

void JsonReader::skip_blanks() {
  while (at_ < text_.size() &&
         (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\r' || text_[at_] == '\t'))
    ++at_;
}

char JsonReader::peek() {
  skip_blanks();
  value_at_ = at_;
  return at_ < text_.size() ? text_[at_] : '\0';
}

void JsonReader::expect(char c, std::string_view what) {
  if (peek() != c || at_ >= text_.size()) fail("not legal JSON here", what);
  ++at_;
}

void JsonReader::begin_object() {
  expect('{', "an object");
  if (started_.size() >= kMaxDepth)
    fail("JSON is nested too deep", fmt::format("at most {} levels", kMaxDepth));
  started_.push_back(false);
}

bool JsonReader::next_key(std::string& key) {
  SLUICE_CHECK(!started_.empty());
  if (peek() == '}') {
    ++at_;
    started_.pop_back();
    return false;
  }
  if (started_.back()) expect(',', "',' or '}'");
  started_.back() = true;
  read_string(key);
  const std::size_t key_at = value_at_;
  expect(':', "':'");
  value_at_ = key_at;
  return true;
}

void JsonReader::begin_array() {
  expect('[', "an array");
  if (started_.size() >= kMaxDepth)
    fail("JSON is nested too deep", fmt::format("at most {} levels", kMaxDepth));
  started_.push_back(false);
}

bool JsonReader::next_item() {
  SLUICE_CHECK(!started_.empty());
  if (peek() == ']') {
    ++at_;
    started_.pop_back();
    return false;
  }
  if (started_.back()) {
    expect(',', "',' or ']'");
    if (peek() == ']') fail("not legal JSON here", "a value");
  }
  started_.back() = true;
  return true;
}

bool JsonReader::at_string() { return peek() == '"'; }

std::string JsonReader::read_string() {
  std::string text;
  read_string(text);
  return text;
}

unsigned JsonReader::read_hex4() {
  unsigned code = 0;
  for (int i = 0; i < 4; ++i, ++at_) {
    const char c = at_ < text_.size() ? text_[at_] : '\0';
    if (is_digit(c)) {
      code = code << 4 | static_cast<unsigned>(c - '0');
    } else if ((c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F')) {
      code = code << 4 | (static_cast<unsigned>(c | 0x20) - 'a' + 10);
    } else {
      fail("bad \\u escape in a string", "four hexadecimal digits");
    }
  }
  return code;
}

void JsonReader::read_string(std::string& out) {
  expect('"', "a string");
  const std::size_t start = value_at_;
  out.clear();
  for (;;) {
    // The run up to the next quote, escape or odd byte, in one go.
    std::size_t run = at_;
    while (run < text_.size() && text_[run] != '"' && text_[run] != '\\' &&
           static_cast<unsigned char>(text_[run]) >= 0x20 && static_cast<unsigned char>(text_[run]) < 0x80) {
      ++run;
    }
    out.append(text_, at_, run - at_);
    at_ = run;
    if (at_ >= text_.size()) fail("a string does not end", "'\"'");
    const char c = text_[at_];
    if (c == '"') break;
    if (c == '\\') {
      ++at_;
      const char escape = at_ < text_.size() ? text_[at_] : '\0';
      static constexpr std::string_view kNames = "\"\\/bfnrt", kValues = "\"\\/\b\f\n\r\t";
      const std::size_t known = kNames.find(escape);
      if (escape != '\0' && known != std::string_view::npos) {
        out.push_back(kValues[known]);
        ++at_;
      } else if (escape == 'u') {
        ++at_;
        unsigned code = read_hex4();
        if (code >= 0xD800 && code < 0xDC00) {
          if (text_.substr(at_, 2) != "\\u") fail("half a surrogate pair in a string", "\\u");
          at_ += 2;
          const unsigned low = read_hex4();
          if (low < 0xDC00 || low > 0xDFFF)
            fail("half a surrogate pair in a string", "a low surrogate before this");
          code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
        } else if (code >= 0xDC00 && code <= 0xDFFF) {
          fail("half a surrogate pair in a string", "a high surrogate first");
        }
        append_utf8(out, code);
      } else {
        fail("unknown escape in a string", "one of \" \\ / b f n r t u");
      }
    } else if (static_cast<unsigned char>(c) < 0x20) {
      fail("control character in a string", "an escape");
    } else {
      const std::size_t length = utf8_length(text_, at_);
      if (length == 0) fail("a string is not UTF-8", "UTF-8");
      out.append(text_, at_, length);
      at_ += length;
    }
  }
  ++at_;
  value_at_ = start;
}

std::uint64_t JsonReader::read_number() {
  constexpr std::string_view kWanted = "a whole number from 0 to 2^64-1";
  if (!is_digit(peek())) fail("not a whole number", kWanted);
  const std::size_t start = at_;
  std::uint64_t value = 0;
  for (; at_ < text_.size() && is_digit(text_[at_]); ++at_) {
    const auto digit = static_cast<std::uint64_t>(text_[at_] - '0');
    if (value > (UINT64_MAX - digit) / 10) fail("a number is too large", kWanted);
    value = value * 10 + digit;
  }
  if (text_[start] == '0' && at_ - start > 1) fail("a number has leading zeros", kWanted);
  if (at_ < text_.size() && (text_[at_] == '.' || text_[at_] == 'e' || text_[at_] == 'E')) {
    fail("not a whole number", kWanted);
  }
  return value;
}

void JsonReader::skip_number() {
  const auto digits = [&] {
    if (at_ >= text_.size() || !is_digit(text_[at_])) fail("not legal JSON here", "a digit");
    while (at_ < text_.size() && is_digit(text_[at_])) ++at_;
  };
  if (text_[at_] == '-') ++at_;
  const bool zero = at_ < text_.size() && text_[at_] == '0';
  const std::size_t start = at_;
  digits();
  if (zero && at_ - start > 1) fail("a number has leading zeros", "JSON");
  if (at_ < text_.size() && text_[at_] == '.') {
    ++at_;
    digits();
  }
  if (at_ < text_.size() && (text_[at_] == 'e' || text_[at_] == 'E')) {
    ++at_;
    if (at_ < text_.size() && (text_[at_] == '+' || text_[at_] == '-')) ++at_;
    digits();
  }
}

void JsonReader::skip_literal() {
  for (const std::string_view word : {"true", "false", "null"}) {
    if (text_.substr(at_, word.size()) == word) {
      at_ += word.size();
      return;
    }
  }
  fail("not legal JSON here", "a value");
}

void JsonReader::skip_value() {
  const std::size_t outer = started_.size();
  std::vector<bool> is_object;  // for each level that this call has opened
  std::string text;
  do {
    // Reads one value, or the end of the innermost level.
    if (!is_object.empty()) {
      const bool more = is_object.back() ? next_key(text) : next_item();
      if (!more) {
        is_object.pop_back();
        continue;
      }
    }
    switch (peek()) {
      case '{':
        begin_object();
        is_object.push_back(true);
        break;
      case '[':
        begin_array();
        is_object.push_back(false);
        break;
      case '"':
        read_string(text);
        break;
      case '-':
      case '0':
      case '1':
      case '2':
      case '3':
      case '4':
      case '5':
      case '6':
      case '7':
      case '8':
      case '9':
        skip_number();
        break;
      default:
        skip_literal();
    }
  } while (started_.size() > outer);
}

void JsonReader::end() {
  skip_blanks();
  if (at_ < text_.size()) fail("something follows the JSON value", "nothing");
}

bool is_utf8(std::string_view text) {
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t length = utf8_length(text, at);
    if (length == 0) return false;
    at += length;
  }
  return true;
}

void append_json_string(std::string& out, std::string_view text) {
  out.push_back('"');
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      out.push_back('\\');
      out.push_back(c);
    } else if (static_cast<unsigned char>(c) < 0x20) {
      out += fmt::format("\\u{:04x}", static_cast<unsigned>(c));
    } else {
      out.push_back(c);
    }
  }
  out.push_back('"');
}

}  // namespace sluice::store
