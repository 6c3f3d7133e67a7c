#include "tokenizer/text/utf8.h"

#include <cstdint>
#include <cstring>

namespace sluice::tokenizer {
namespace {

unsigned char byte_at(std::string_view text, std::size_t i) { return static_cast<unsigned char>(text[i]); }

bool in(unsigned char byte, unsigned char low, unsigned char high) { return byte >= low && byte <= high; }

// Length of the character that begins with `lead`, and the range of its second byte (Unicode 15, table 3-7).
struct Lead {
  unsigned length;
  unsigned char second_low, second_high;
};

Lead lead_of(unsigned char lead) {
  if (lead < 0x80) return {1, 0, 0};
  if (in(lead, 0xC2, 0xDF)) return {2, 0x80, 0xBF};
  if (lead == 0xE0) return {3, 0xA0, 0xBF};
  if (lead == 0xED) return {3, 0x80, 0x9F};
  if (in(lead, 0xE1, 0xEF)) return {3, 0x80, 0xBF};
  if (lead == 0xF0) return {4, 0x90, 0xBF};
  if (in(lead, 0xF1, 0xF3)) return {4, 0x80, 0xBF};
  if (lead == 0xF4) return {4, 0x80, 0x8F};
  return {0, 0, 0};
}

// Bytes of `text` that form the beginning of a character, at most the character's length; 0 if the first byte
// cannot begin one.
unsigned well_formed_prefix(std::string_view text, const Lead& lead) {
  if (lead.length == 0) return 0;
  unsigned n = 1;
  if (n < lead.length && n < text.size() && in(byte_at(text, n), lead.second_low, lead.second_high)) {
    ++n;
    while (n < lead.length && n < text.size() && in(byte_at(text, n), 0x80, 0xBF)) ++n;
  }
  return n;
}

}  // namespace

CodePoint decode_utf8(std::string_view text) {
  if (text.empty()) return {};
  const Lead lead = lead_of(byte_at(text, 0));
  if (lead.length == 0 || well_formed_prefix(text, lead) != lead.length) return {};
  return decode_valid_utf8(text);
}

CodePoint decode_valid_utf8(std::string_view text) {
  const char32_t b0 = byte_at(text, 0);
  if (b0 < 0x80) return {b0, 1};
  const auto tail = [&](std::size_t i) { return static_cast<char32_t>(byte_at(text, i) & 0x3F); };
  if (b0 < 0xE0) return {((b0 & 0x1F) << 6) | tail(1), 2};
  if (b0 < 0xF0) return {((b0 & 0x0F) << 12) | (tail(1) << 6) | tail(2), 3};
  return {((b0 & 0x07) << 18) | (tail(1) << 12) | (tail(2) << 6) | tail(3), 4};
}

CodePoint decode_last_utf8(std::string_view text) {
  std::size_t at = text.size() - 1;
  while (at > 0 && (byte_at(text, at) & 0xC0) == 0x80) --at;
  return decode_valid_utf8(text.substr(at));
}

void append_utf8(std::string& out, char32_t c) {
  if (c < 0x80) {
    out += static_cast<char>(c);
  } else if (c < 0x800) {
    out += static_cast<char>(0xC0 | (c >> 6));
    out += static_cast<char>(0x80 | (c & 0x3F));
  } else if (c < 0x10000) {
    out += static_cast<char>(0xE0 | (c >> 12));
    out += static_cast<char>(0x80 | ((c >> 6) & 0x3F));
    out += static_cast<char>(0x80 | (c & 0x3F));
  } else {
    out += static_cast<char>(0xF0 | (c >> 18));
    out += static_cast<char>(0x80 | ((c >> 12) & 0x3F));
    out += static_cast<char>(0x80 | ((c >> 6) & 0x3F));
    out += static_cast<char>(0x80 | (c & 0x3F));
  }
}

std::optional<std::size_t> find_invalid_utf8(std::string_view text) {
  std::size_t at = 0;
  while (at < text.size()) {
    if (text.size() - at >= 8) {  // eight ASCII characters at once
      std::uint64_t word;
      std::memcpy(&word, text.data() + at, sizeof word);
      if ((word & 0x8080808080808080u) == 0) {
        at += 8;
        continue;
      }
    }
    const CodePoint c = decode_utf8(text.substr(at));
    if (c.length == 0) return at;
    at += c.length;
  }
  return std::nullopt;
}

void Utf8Lossy::append(std::string_view bytes, std::string& out) {
  std::string joined;
  if (!held_.empty()) {
    joined = held_;
    joined += bytes;
    bytes = joined;
    held_.clear();
  }
  std::size_t at = 0;
  while (at < bytes.size()) {
    const std::string_view rest = bytes.substr(at);
    const Lead lead = lead_of(byte_at(rest, 0));
    const unsigned n = well_formed_prefix(rest, lead);
    if (n == lead.length && n > 0) {
      out += rest.substr(0, n);
      at += n;
    } else if (n > 0 && n == rest.size()) {
      held_ = rest;  // may still become a character
      return;
    } else {
      out += kReplacementCharacter;
      at += n > 0 ? n : 1;
    }
  }
}

void Utf8Lossy::finish(std::string& out) {
  if (!held_.empty()) out += kReplacementCharacter;
  held_.clear();
}

}  // namespace sluice::tokenizer
