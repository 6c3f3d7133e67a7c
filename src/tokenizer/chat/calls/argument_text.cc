#include "tokenizer/chat/calls/argument_text.h"

#include <fmt/format.h>

#include <cstdlib>
#include <utility>

#include "tokenizer/text/utf8.h"

namespace sluice::tokenizer {
namespace {

constexpr std::string_view kReplaced = "\xef\xbf\xbd";

}  // namespace

// An escape is whole: \uNNNN.
void StringContent::add_code(std::string& text) {
  const auto code =
      static_cast<unsigned>(std::strtoul(std::exchange(escape_, {}).substr(2).c_str(), nullptr, 16));
  const unsigned high = std::exchange(high_, 0);
  const bool is_low = code >= 0xdc00 && code < 0xe000;
  if (high != 0 && is_low) return append_utf8(text, 0x10000 + ((high - 0xd800) << 10) + (code - 0xdc00));
  if (high != 0) text += kReplaced;
  if (code >= 0xd800 && code < 0xdc00)
    high_ = code;
  else if (is_low)
    text += kReplaced;
  else
    append_utf8(text, code);
}

void StringContent::add(char byte, std::string& text) {
  if (escape_.size() >= 2) {  // \u
    const bool digit = std::string_view("0123456789abcdefABCDEF").find(byte) != std::string_view::npos;
    if (digit) {
      escape_ += byte;
      if (escape_.size() == 6) add_code(text);
      return;
    }
    if (std::exchange(high_, 0) != 0) text += kReplaced;
    text += std::exchange(escape_, {});
  }
  if (escape_.empty() && byte == '\\') {
    escape_ = byte;
    return;
  }
  if (!escape_.empty() && byte == 'u') {
    escape_ += byte;
    return;
  }
  if (std::exchange(high_, 0) != 0) text += kReplaced;
  if (std::exchange(escape_, {}).empty()) {
    if (byte != '"') text += byte;
    return;
  }
  constexpr std::string_view kNames = "\"\\/bfnrt", kBytes = "\"\\/\b\f\n\r\t";
  const std::size_t at = kNames.find(byte);
  if (at == std::string_view::npos)
    (text += '\\') += byte;
  else
    text += kBytes[at];
}

std::string StringContent::append(std::string_view raw) {
  std::string text;
  for (const char byte : raw) add(byte, text);
  return text;
}

std::string StringContent::finish() {
  std::string text;
  if (std::exchange(high_, 0) != 0) text += kReplaced;
  return text += std::exchange(escape_, {});
}

std::string string_content(std::string_view raw) {
  StringContent content;
  std::string text = content.append(raw);
  return text += content.finish();
}

std::string ArgumentText::append(std::string_view raw) {
  if (raw.empty()) return {};
  if (!std::exchange(begun_, true)) is_string_ = raw.front() == '"';
  return is_string_ ? content_.append(raw) : std::string(raw);
}

std::string ArgumentText::finish() { return content_.finish(); }

std::string quoted_json(std::string_view text) {
  std::string quoted = "\"";
  for (const char byte : text) {
    if (byte == '"' || byte == '\\')
      (quoted += '\\') += byte;
    else if (byte == '\n')
      quoted += "\\n";
    else if (byte == '\t')
      quoted += "\\t";
    else if (byte == '\r')
      quoted += "\\r";
    else if (static_cast<unsigned char>(byte) < 0x20)
      quoted += fmt::format("\\u{:04x}", static_cast<unsigned>(byte));
    else
      quoted += byte;
  }
  return quoted += '"';
}

}  // namespace sluice::tokenizer
