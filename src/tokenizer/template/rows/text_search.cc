#include "tokenizer/template/rows/text_search.h"

#include <string.h>

#include <algorithm>
#include <set>

#include "tokenizer/template/characters.h"
#include "tokenizer/text/utf8.h"

namespace sluice::tokenizer::jinja {
namespace {

// What str.splitlines() takes for the end of a line; "\r\n" is one.
bool ends_line(char32_t c) {
  return (c >= 0xA && c <= 0xD) || (c >= 0x1C && c <= 0x1E) || c == 0x85 || c == 0x2028 || c == 0x2029;
}

}  // namespace

std::optional<std::size_t> find_text(std::string_view text, std::string_view wanted, std::size_t from) {
  if (from > text.size()) return std::nullopt;
  if (wanted.empty()) return from;
  const void* found = memmem(text.data() + from, text.size() - from, wanted.data(), wanted.size());
  if (found == nullptr) return std::nullopt;
  return static_cast<std::size_t>(static_cast<const char*>(found) - text.data());
}

std::vector<MarkedText> split_at(const MarkedText& text, std::string_view separator, std::int64_t most,
                                 Side side) {
  const std::string_view bytes = text.bytes();
  std::vector<std::size_t> places;
  if (side == Side::kStart) {
    for (std::size_t from = 0; most < 0 || std::ssize(places) < most;) {
      const auto found = find_text(bytes, separator, from);
      if (!found) break;
      places.push_back(*found);
      from = *found + separator.size();
    }
  } else {
    // The mirrored text is searched from its start, which is linear, too.
    const std::string mirrored(bytes.rbegin(), bytes.rend());
    const std::string wanted(separator.rbegin(), separator.rend());
    for (std::size_t from = 0; most < 0 || std::ssize(places) < most;) {
      const auto found = find_text(mirrored, wanted, from);
      if (!found) break;
      from = *found + wanted.size();
      places.push_back(bytes.size() - from);
    }
    std::reverse(places.begin(), places.end());
  }
  std::vector<MarkedText> parts;
  std::size_t begin = 0;
  for (const std::size_t place : places) {
    parts.push_back(text.part(begin, place));
    begin = place + separator.size();
  }
  parts.push_back(text.part(begin, bytes.size()));
  return parts;
}

std::vector<MarkedText> split_at_space(const MarkedText& text, std::int64_t most, Side side) {
  const std::string_view bytes = text.bytes();
  std::vector<MarkedText> parts;
  if (side == Side::kEnd) {
    std::size_t end = space_at_end(bytes);
    while (end > 0 && (most < 0 || std::ssize(parts) < most)) {
      std::size_t begin = end;
      while (begin > 0) {
        const CodePoint c = decode_last_utf8(bytes.substr(0, begin));
        if (is_space(c.value)) break;
        begin -= c.length;
      }
      parts.push_back(text.part(begin, end));
      end = space_at_end(bytes.substr(0, begin));
    }
    if (end > 0) parts.push_back(text.part(0, end));
    std::reverse(parts.begin(), parts.end());
    return parts;
  }
  std::size_t begin = space_at_start(bytes);
  while (begin < bytes.size() && (most < 0 || std::ssize(parts) < most)) {
    std::size_t end = begin;
    while (end < bytes.size()) {
      const CodePoint c = decode_valid_utf8(bytes.substr(end));
      if (is_space(c.value)) break;
      end += c.length;
    }
    parts.push_back(text.part(begin, end));
    begin = end + space_at_start(bytes.substr(end));
  }
  // Once all cuts are made, the rest keeps the white space at its end.
  if (begin < bytes.size()) parts.push_back(text.part(begin, bytes.size()));
  return parts;
}

std::vector<MarkedText> split_lines(const MarkedText& text, bool keep_ends) {
  const std::string_view bytes = text.bytes();
  std::vector<MarkedText> lines;
  std::size_t begin = 0;
  for (std::size_t at = 0; at < bytes.size();) {
    const CodePoint c = decode_valid_utf8(bytes.substr(at));
    std::size_t next = at + c.length;
    if (ends_line(c.value)) {
      if (c.value == '\r' && next < bytes.size() && bytes[next] == '\n') ++next;
      lines.push_back(text.part(begin, keep_ends ? next : at));
      begin = next;
    }
    at = next;
  }
  if (begin < bytes.size()) lines.push_back(text.part(begin, bytes.size()));
  return lines;
}

MarkedText replaced(const MarkedText& text, std::string_view wanted, const MarkedText& replacement,
                    std::int64_t most, std::size_t most_bytes) {
  const std::string_view bytes = text.bytes();
  MarkedText result;
  std::size_t done = 0;
  if (wanted.empty()) {
    // Before each character, and at the end.
    for (std::int64_t count = 0; (most < 0 || count < most) && result.size() <= most_bytes; ++count) {
      result.append(replacement);
      if (done == bytes.size()) return result;
      const std::size_t next = done + decode_valid_utf8(bytes.substr(done)).length;
      result.append(text, done, next);
      done = next;
    }
  } else {
    for (std::int64_t count = 0; (most < 0 || count < most) && result.size() <= most_bytes; ++count) {
      const auto found = find_text(bytes, wanted, done);
      if (!found) break;
      result.append(text, done, *found);
      result.append(replacement);
      done = *found + wanted.size();
    }
  }
  result.append(text, done, bytes.size());
  return result;
}

MarkedText stripped_text(const MarkedText& text, bool at_start, bool at_end,
                         std::optional<std::string_view> chars) {
  std::string_view bytes = text.bytes();
  std::size_t begin = 0, end = bytes.size();
  std::set<char32_t> unwanted;
  if (chars) {
    for (std::size_t at = 0; at < chars->size();) {
      const CodePoint c = decode_valid_utf8(chars->substr(at));
      unwanted.insert(c.value);
      at += c.length;
    }
  }
  const auto goes = [&](char32_t c) { return chars ? unwanted.contains(c) : is_space(c); };
  while (at_start && begin < end) {
    const CodePoint c = decode_valid_utf8(bytes.substr(begin));
    if (!goes(c.value)) break;
    begin += c.length;
  }
  while (at_end && begin < end) {
    const CodePoint c = decode_last_utf8(bytes.substr(begin, end - begin));
    if (!goes(c.value)) break;
    end -= c.length;
  }
  return text.part(begin, end);
}

}  // namespace sluice::tokenizer::jinja
