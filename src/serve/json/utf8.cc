#include "serve/json/utf8.h"

namespace sluice::serve {
namespace {

struct Utf8Step {
  std::size_t bytes = 1;  // bytes of a whole character, or of what begins one
  bool whole = false;
};

Utf8Step next_character(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char lead = byte(0);
  if (lead < 0x80) return {1, true};
  if (lead < 0xc2 || lead > 0xf4) return {1, false};
  const std::size_t length = lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
  unsigned char low = 0x80, high = 0xbf;  // bounds of the second byte
  if (lead == 0xe0) low = 0xa0;
  if (lead == 0xed) high = 0x9f;
  if (lead == 0xf0) low = 0x90;
  if (lead == 0xf4) high = 0x8f;
  for (std::size_t i = 1; i < length; ++i) {
    if (i >= text.size() || byte(i) < low || byte(i) > high) return {i, false};
    low = 0x80, high = 0xbf;
  }
  return {length, true};
}

}  // namespace

std::size_t invalid_utf8(std::string_view text) {
  for (std::size_t at = 0; at < text.size();) {
    if (static_cast<unsigned char>(text[at]) < 0x80) {
      ++at;
      continue;
    }
    const Utf8Step step = next_character(text.substr(at));
    if (!step.whole) return at;
    at += step.bytes;
  }
  return text.npos;
}

void append_utf8(std::string& text, std::uint32_t code) {
  const auto put = [&](std::uint32_t byte) { text += static_cast<char>(byte); };
  if (code < 0x80) {
    put(code);
  } else if (code < 0x800) {
    put(0xc0 | code >> 6), put(0x80 | (code & 0x3f));
  } else if (code < 0x10000) {
    put(0xe0 | code >> 12), put(0x80 | (code >> 6 & 0x3f)), put(0x80 | (code & 0x3f));
  } else {
    put(0xf0 | code >> 18), put(0x80 | (code >> 12 & 0x3f)), put(0x80 | (code >> 6 & 0x3f));
    put(0x80 | (code & 0x3f));
  }
}

std::string valid_utf8(std::string_view bytes) {
  if (invalid_utf8(bytes) == bytes.npos) return std::string(bytes);
  std::string text;
  while (!bytes.empty()) {
    const Utf8Step step = next_character(bytes);
    if (step.whole) {
      text += bytes.substr(0, step.bytes);
    } else {
      append_utf8(text, 0xfffd);
    }
    bytes.remove_prefix(step.bytes);
  }
  return text;
}

std::size_t code_points(std::string_view text) {
  std::size_t count = 0;
  for (const char c : text) count += (static_cast<unsigned char>(c) & 0xc0) != 0x80;
  return count;
}

}  // namespace sluice::serve
