#include "eval/tasks/python_text.h"

#include <utf8proc.h>

#include "base/error.h"
#include "tokenizer/text/utf8.h"

namespace sluice::eval {
namespace {

// str.isspace(): White_Space, and the four separators of ASCII.
bool is_space(char32_t c) {
  return (c >= 0x09 && c <= 0x0D) || (c >= 0x1C && c <= 0x20) || c == 0x85 || c == 0xA0 || c == 0x1680 ||
         (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 || c == 0x202F || c == 0x205F ||
         c == 0x3000;
}

}  // namespace

std::string_view rstrip(std::string_view text) {
  while (!text.empty()) {
    const tokenizer::CodePoint last = tokenizer::decode_last_utf8(text);
    if (!is_space(last.value)) break;
    text.remove_suffix(last.length);
  }
  return text;
}

std::string_view strip(std::string_view text) {
  text = rstrip(text);
  while (!text.empty()) {
    const tokenizer::CodePoint first = tokenizer::decode_valid_utf8(text);
    if (!is_space(first.value)) break;
    text.remove_prefix(first.length);
  }
  return text;
}

std::string capitalize(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const tokenizer::CodePoint c = tokenizer::decode_valid_utf8(text);
    const auto value = static_cast<utf8proc_int32_t>(c.value);
    tokenizer::append_utf8(
        out, static_cast<char32_t>(out.empty() ? utf8proc_totitle(value) : utf8proc_tolower(value)));
    text.remove_prefix(c.length);
  }
  return out;
}

std::string replace(std::string_view text, std::string_view from, std::string_view to) {
  SLUICE_CHECK(!from.empty());
  std::string out;
  for (std::size_t at = text.find(from); at != std::string_view::npos; at = text.find(from)) {
    out.append(text.substr(0, at)).append(to);
    text.remove_prefix(at + from.size());
  }
  return out.append(text);
}

std::size_t length(std::string_view text) {
  std::size_t count = 0;
  for (const char c : text) count += (static_cast<unsigned char>(c) & 0xC0) != 0x80;
  return count;
}

}  // namespace sluice::eval
