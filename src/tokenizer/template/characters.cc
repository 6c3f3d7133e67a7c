#include "tokenizer/template/characters.h"

#include <utf8proc.h>

#include <algorithm>

#include "tokenizer/text/utf8.h"

namespace sluice::tokenizer::jinja {
namespace {

utf8proc_category_t category_of(char32_t c) {
  return static_cast<utf8proc_category_t>(utf8proc_category(static_cast<utf8proc_int32_t>(c)));
}

struct LongUpper {
  char32_t c;
  char32_t upper[3];
};
// Characters that become several in capitals (Unicode, SpecialCasing).
// clang-format off
constexpr LongUpper kLongUppers[] = {
    {0xDF, {0x53, 0x53}}, {0x149, {0x2BC, 0x4E}}, {0x1F0, {0x4A, 0x30C}}, {0x390, {0x399, 0x308, 0x301}},
    {0x3B0, {0x3A5, 0x308, 0x301}}, {0x587, {0x535, 0x552}}, {0x1E96, {0x48, 0x331}},
    {0x1E97, {0x54, 0x308}}, {0x1E98, {0x57, 0x30A}}, {0x1E99, {0x59, 0x30A}}, {0x1E9A, {0x41, 0x2BE}},
    {0x1F50, {0x3A5, 0x313}}, {0x1F52, {0x3A5, 0x313, 0x300}}, {0x1F54, {0x3A5, 0x313, 0x301}},
    {0x1F56, {0x3A5, 0x313, 0x342}}, {0x1F80, {0x1F08, 0x399}}, {0x1F81, {0x1F09, 0x399}},
    {0x1F82, {0x1F0A, 0x399}}, {0x1F83, {0x1F0B, 0x399}}, {0x1F84, {0x1F0C, 0x399}},
    {0x1F85, {0x1F0D, 0x399}}, {0x1F86, {0x1F0E, 0x399}}, {0x1F87, {0x1F0F, 0x399}},
    {0x1F88, {0x1F08, 0x399}}, {0x1F89, {0x1F09, 0x399}}, {0x1F8A, {0x1F0A, 0x399}},
    {0x1F8B, {0x1F0B, 0x399}}, {0x1F8C, {0x1F0C, 0x399}}, {0x1F8D, {0x1F0D, 0x399}},
    {0x1F8E, {0x1F0E, 0x399}}, {0x1F8F, {0x1F0F, 0x399}}, {0x1F90, {0x1F28, 0x399}},
    {0x1F91, {0x1F29, 0x399}}, {0x1F92, {0x1F2A, 0x399}}, {0x1F93, {0x1F2B, 0x399}},
    {0x1F94, {0x1F2C, 0x399}}, {0x1F95, {0x1F2D, 0x399}}, {0x1F96, {0x1F2E, 0x399}},
    {0x1F97, {0x1F2F, 0x399}}, {0x1F98, {0x1F28, 0x399}}, {0x1F99, {0x1F29, 0x399}},
    {0x1F9A, {0x1F2A, 0x399}}, {0x1F9B, {0x1F2B, 0x399}}, {0x1F9C, {0x1F2C, 0x399}},
    {0x1F9D, {0x1F2D, 0x399}}, {0x1F9E, {0x1F2E, 0x399}}, {0x1F9F, {0x1F2F, 0x399}},
    {0x1FA0, {0x1F68, 0x399}}, {0x1FA1, {0x1F69, 0x399}}, {0x1FA2, {0x1F6A, 0x399}},
    {0x1FA3, {0x1F6B, 0x399}}, {0x1FA4, {0x1F6C, 0x399}}, {0x1FA5, {0x1F6D, 0x399}},
    {0x1FA6, {0x1F6E, 0x399}}, {0x1FA7, {0x1F6F, 0x399}}, {0x1FA8, {0x1F68, 0x399}},
    {0x1FA9, {0x1F69, 0x399}}, {0x1FAA, {0x1F6A, 0x399}}, {0x1FAB, {0x1F6B, 0x399}},
    {0x1FAC, {0x1F6C, 0x399}}, {0x1FAD, {0x1F6D, 0x399}}, {0x1FAE, {0x1F6E, 0x399}},
    {0x1FAF, {0x1F6F, 0x399}}, {0x1FB2, {0x1FBA, 0x399}}, {0x1FB3, {0x391, 0x399}},
    {0x1FB4, {0x386, 0x399}}, {0x1FB6, {0x391, 0x342}}, {0x1FB7, {0x391, 0x342, 0x399}},
    {0x1FBC, {0x391, 0x399}}, {0x1FC2, {0x1FCA, 0x399}}, {0x1FC3, {0x397, 0x399}}, {0x1FC4, {0x389, 0x399}},
    {0x1FC6, {0x397, 0x342}}, {0x1FC7, {0x397, 0x342, 0x399}}, {0x1FCC, {0x397, 0x399}},
    {0x1FD2, {0x399, 0x308, 0x300}}, {0x1FD3, {0x399, 0x308, 0x301}}, {0x1FD6, {0x399, 0x342}},
    {0x1FD7, {0x399, 0x308, 0x342}}, {0x1FE2, {0x3A5, 0x308, 0x300}}, {0x1FE3, {0x3A5, 0x308, 0x301}},
    {0x1FE4, {0x3A1, 0x313}}, {0x1FE6, {0x3A5, 0x342}}, {0x1FE7, {0x3A5, 0x308, 0x342}},
    {0x1FF2, {0x1FFA, 0x399}}, {0x1FF3, {0x3A9, 0x399}}, {0x1FF4, {0x38F, 0x399}}, {0x1FF6, {0x3A9, 0x342}},
    {0x1FF7, {0x3A9, 0x342, 0x399}}, {0x1FFC, {0x3A9, 0x399}}, {0xFB00, {0x46, 0x46}},
    {0xFB01, {0x46, 0x49}}, {0xFB02, {0x46, 0x4C}}, {0xFB03, {0x46, 0x46, 0x49}},
    {0xFB04, {0x46, 0x46, 0x4C}}, {0xFB05, {0x53, 0x54}}, {0xFB06, {0x53, 0x54}}, {0xFB13, {0x544, 0x546}},
    {0xFB14, {0x544, 0x535}}, {0xFB15, {0x544, 0x53B}}, {0xFB16, {0x54E, 0x546}}, {0xFB17, {0x544, 0x53D}},
};

struct DigitRange {
  char32_t first, last;
};
// Digits that are not of category Nd.
constexpr DigitRange kDigits[] = {
    {0xB2, 0xB3}, {0xB9, 0xB9}, {0x1369, 0x1371}, {0x19DA, 0x19DA}, {0x2070, 0x2070}, {0x2074, 0x2079},
    {0x2080, 0x2089}, {0x2460, 0x2468}, {0x2474, 0x247C}, {0x2488, 0x2490}, {0x24EA, 0x24EA},
    {0x24F5, 0x24FD}, {0x24FF, 0x24FF}, {0x2776, 0x277E}, {0x2780, 0x2788}, {0x278A, 0x2792},
    {0x10A40, 0x10A43}, {0x10E60, 0x10E68}, {0x11052, 0x1105A}, {0x1F100, 0x1F10A},
};
// clang-format on

void append_upper(std::string& out, char32_t c) {
  const auto* at = std::lower_bound(std::begin(kLongUppers), std::end(kLongUppers), c,
                                    [](const LongUpper& row, char32_t wanted) { return row.c < wanted; });
  if (at == std::end(kLongUppers) || at->c != c) {
    append_utf8(out, static_cast<char32_t>(utf8proc_toupper(static_cast<utf8proc_int32_t>(c))));
    return;
  }
  for (const char32_t part : at->upper)
    if (part != 0) append_utf8(out, part);
}

void append_title(std::string& out, char32_t c) {
  std::string upper;
  append_upper(upper, c);
  if (count_chars(upper) == 1) {
    append_utf8(out, static_cast<char32_t>(utf8proc_totitle(static_cast<utf8proc_int32_t>(c))));
    return;
  }
  const CodePoint first = decode_valid_utf8(upper);
  out += upper.substr(0, first.length);
  for (std::size_t at = first.length; at < upper.size();) {
    const CodePoint next = decode_valid_utf8(std::string_view(upper).substr(at));
    append_utf8(out, static_cast<char32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(next.value))));
    at += next.length;
  }
}

bool is_cased(char32_t c) { return is_upper(c) || is_lower(c) || is_title(c); }

// Marks and such, which the rule of the final sigma looks through.
bool is_case_ignorable(char32_t c) {
  switch (category_of(c)) {
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_ME:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_SK:
      return true;
    default:
      return c == '\'' || c == '.' || c == ':' || c == 0xB7 || c == 0x2018 || c == 0x2019;
  }
}

// A capital sigma at the end of a word: behind a letter, and before none.
bool is_final_sigma(std::string_view text, std::size_t at) {
  std::string_view before = text.substr(0, at), after = text.substr(at + 2);
  bool behind_letter = false;
  while (!before.empty()) {
    const CodePoint c = decode_last_utf8(before);
    if (!is_case_ignorable(c.value)) {
      behind_letter = is_cased(c.value);
      break;
    }
    before.remove_suffix(c.length);
  }
  if (!behind_letter) return false;
  while (!after.empty()) {
    const CodePoint c = decode_valid_utf8(after);
    if (!is_case_ignorable(c.value)) return !is_cased(c.value);
    after.remove_prefix(c.length);
  }
  return true;
}

constexpr char32_t kCapitalSigma = 0x3A3, kFinalSigma = 0x3C2, kCapitalIWithDot = 0x130;

void append_lower(std::string& out, char32_t c, std::string_view all, std::size_t at) {
  if (c == kCapitalSigma && is_final_sigma(all, at)) {
    append_utf8(out, kFinalSigma);
  } else if (c == kCapitalIWithDot) {
    out += "i\xCC\x87";
  } else {
    append_utf8(out, static_cast<char32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(c))));
  }
}

// `append(out, c, at)` writes what becomes of the character at this offset.
template <class Append>
MarkedText mapped(const MarkedText& text, Append append) {
  MarkedText result;
  std::string out;
  std::size_t at = 0;
  text.each_run([&](std::string_view run, Origin origin) {
    out.clear();
    for (std::size_t i = 0; i < run.size();) {
      const CodePoint c = decode_valid_utf8(run.substr(i));
      append(out, c.value, at + i);
      i += c.length;
    }
    at += run.size();
    result.append(out, origin);
  });
  return result;
}

}  // namespace

bool is_space(char32_t c) {
  return (c >= 0x9 && c <= 0xD) || (c >= 0x1C && c <= 0x20) || c == 0x85 || c == 0xA0 || c == 0x1680 ||
         (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 || c == 0x202F || c == 0x205F ||
         c == 0x3000;
}

bool is_letter(char32_t c) {
  const auto category = category_of(c);
  return category >= UTF8PROC_CATEGORY_LU && category <= UTF8PROC_CATEGORY_LO;
}

bool is_digit_char(char32_t c) {
  return category_of(c) == UTF8PROC_CATEGORY_ND ||
         std::any_of(std::begin(kDigits), std::end(kDigits),
                     [c](const DigitRange& range) { return c >= range.first && c <= range.last; });
}

bool is_word_char(char32_t c) {
  const auto category = category_of(c);
  return c == '_' || is_letter(c) || category == UTF8PROC_CATEGORY_ND || category == UTF8PROC_CATEGORY_NL ||
         category == UTF8PROC_CATEGORY_NO;
}

bool is_printable(char32_t c) {
  if (c == ' ') return true;
  switch (category_of(c)) {
    case UTF8PROC_CATEGORY_CN:
    case UTF8PROC_CATEGORY_CC:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_CS:
    case UTF8PROC_CATEGORY_CO:
    case UTF8PROC_CATEGORY_ZS:
    case UTF8PROC_CATEGORY_ZL:
    case UTF8PROC_CATEGORY_ZP:
      return false;
    default:
      return true;
  }
}

bool is_upper(char32_t c) { return category_of(c) == UTF8PROC_CATEGORY_LU; }
bool is_lower(char32_t c) { return category_of(c) == UTF8PROC_CATEGORY_LL; }
bool is_title(char32_t c) { return category_of(c) == UTF8PROC_CATEGORY_LT; }

std::size_t space_at_start(std::string_view text) {
  std::size_t at = 0;
  while (at < text.size()) {
    const CodePoint c = decode_valid_utf8(text.substr(at));
    if (!is_space(c.value)) break;
    at += c.length;
  }
  return at;
}

std::size_t space_at_end(std::string_view text) {
  while (!text.empty()) {
    const CodePoint c = decode_last_utf8(text);
    if (!is_space(c.value)) break;
    text.remove_suffix(c.length);
  }
  return text.size();
}

std::string_view stripped(std::string_view text) {
  text = text.substr(0, space_at_end(text));
  return text.substr(space_at_start(text));
}

std::size_t count_chars(std::string_view text) {
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xC0) != 0x80; }));
}

std::vector<std::size_t> char_offsets(std::string_view text) {
  std::vector<std::size_t> offsets;
  for (std::size_t i = 0; i < text.size(); ++i)
    if ((text[i] & 0xC0) != 0x80) offsets.push_back(i);
  offsets.push_back(text.size());
  return offsets;
}

MarkedText upper_case(const MarkedText& text) {
  return mapped(text, [](std::string& out, char32_t c, std::size_t) { append_upper(out, c); });
}

MarkedText lower_case(const MarkedText& text) {
  return mapped(
      text, [&](std::string& out, char32_t c, std::size_t at) { append_lower(out, c, text.bytes(), at); });
}

MarkedText capitalized(const MarkedText& text) {
  return mapped(text, [&](std::string& out, char32_t c, std::size_t at) {
    if (at == 0) {
      append_title(out, c);
    } else {
      append_lower(out, c, text.bytes(), at);
    }
  });
}

MarkedText title_case(const MarkedText& text) {
  bool in_word = false;
  return mapped(text, [&](std::string& out, char32_t c, std::size_t at) {
    if (in_word) {
      append_lower(out, c, text.bytes(), at);
    } else {
      append_title(out, c);
    }
    in_word = is_cased(c);
  });
}

MarkedText title_words(const MarkedText& text) {
  bool in_word = false;
  return mapped(text, [&](std::string& out, char32_t c, std::size_t at) {
    const bool divides = is_space(c) || c == '-' || c == '(' || c == '{' || c == '[' || c == '<';
    if (in_word) {
      append_lower(out, c, text.bytes(), at);
    } else {
      append_upper(out, c);
    }
    in_word = !divides;
  });
}

MarkedText html_escaped(const MarkedText& text) {
  return mapped(text, [](std::string& out, char32_t c, std::size_t) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '\'':
        out += "&#39;";
        break;
      case '"':
        out += "&#34;";
        break;
      default:
        append_utf8(out, c);
    }
  });
}

}  // namespace sluice::tokenizer::jinja
