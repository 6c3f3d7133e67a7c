#include "serve/json/json_writer.h"

#include <charconv>
#include <cmath>

#include "serve/json/utf8.h"

namespace sluice::serve {
namespace {

void append_quoted(std::string& text, std::string_view value) {
  static constexpr char kDigits[] = "0123456789abcdef";
  text += '"';
  std::size_t done = 0;
  for (std::size_t at = 0; at < value.size(); ++at) {
    const auto byte = static_cast<unsigned char>(value[at]);
    if (byte >= 0x20 && byte != '"' && byte != '\\') continue;
    text += value.substr(done, at - done);
    done = at + 1;
    text += '\\';
    switch (byte) {
      case '"':
      case '\\':
        text += static_cast<char>(byte);
        break;
      case '\b':
        text += 'b';
        break;
      case '\f':
        text += 'f';
        break;
      case '\n':
        text += 'n';
        break;
      case '\r':
        text += 'r';
        break;
      case '\t':
        text += 't';
        break;
      default:
        text += "u00";
        text += kDigits[byte >> 4];
        text += kDigits[byte & 15];
    }
  }
  text += value.substr(done);
  text += '"';
}

}  // namespace

void JsonWriter::separate() {
  if (comma_) text_ += ',';
  comma_ = true;
}

JsonWriter& JsonWriter::open(char bracket) {
  separate();
  text_ += bracket;
  comma_ = false;
  return *this;
}

JsonWriter& JsonWriter::close(char bracket) {
  text_ += bracket;
  comma_ = true;
  return *this;
}

JsonWriter& JsonWriter::key(std::string_view key) {
  string(key);
  text_ += ':';
  comma_ = false;
  return *this;
}

JsonWriter& JsonWriter::raw(std::string_view json) {
  separate();
  text_ += json;
  return *this;
}

JsonWriter& JsonWriter::string(std::string_view value) {
  separate();
  if (invalid_utf8(value) == value.npos) {
    append_quoted(text_, value);
  } else {
    append_quoted(text_, valid_utf8(value));
  }
  return *this;
}

JsonWriter& JsonWriter::real(double value) {
  if (std::isnan(value) || value == HUGE_VAL) return null();
  if (std::isinf(value)) return raw("-9999.0");
  char digits[40];
  const char* end = std::to_chars(digits, digits + sizeof(digits), value).ptr;
  std::string text(digits, static_cast<std::size_t>(end - digits));
  if (text.find_first_of(".e") == text.npos) text += ".0";
  return raw(text);
}

JsonWriter& JsonWriter::tenth(double value) {
  return real(std::isfinite(value) ? std::round(value * 10) / 10 : 0);
}

}  // namespace sluice::serve
