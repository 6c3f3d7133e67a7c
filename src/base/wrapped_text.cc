#include "base/wrapped_text.h"

#include <algorithm>
#include <iterator>

namespace sluice {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_capital(char c) { return c >= 'A' && c <= 'Z'; }

// Whether a line may not be broken between these words.
bool belong_together(std::string_view word, std::string_view next) {
  constexpr std::string_view kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB",  "MB",   "GB",
                                         "%", "s",   "ms",  "µs",  "GB/s", "tok/s"};
  word.remove_prefix(std::min(word.find_first_not_of("(`"), word.size()));
  if (word.empty() || next.empty()) return false;
  if (word.size() == 1 && is_capital(word[0])) return is_digit(next[0]);
  next = next.substr(0, next.find_last_not_of(",;:.)`") + 1);
  if (word.starts_with("--")) return !next.empty() && std::all_of(next.begin(), next.end(), is_capital);
  return is_digit(word.back()) && std::find(std::begin(kUnits), std::end(kUnits), next) != std::end(kUnits);
}

// The words at the start of `text` that stay on one line.
std::string_view first_words(std::string_view text) {
  const auto word_at = [&](std::size_t begin) {
    return text.substr(begin, text.find_first_of(" \n", begin) - begin);
  };
  std::string_view word = word_at(0);
  std::size_t end = word.size();
  while (end < text.size() && text[end] == ' ') {
    const std::string_view next = word_at(end + 1);
    if (!belong_together(word, next)) break;
    end += 1 + next.size();
    word = next;
  }
  return text.substr(0, end);
}

}  // namespace

std::size_t text_columns(std::string_view text) {
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](char byte) { return (byte & 0xc0) != 0x80; }));
}

std::string wrapped_text(std::string_view text, std::size_t columns, std::size_t at, std::size_t indent) {
  std::string lines;
  std::size_t column = at;
  bool begun = false;      // the line has a word
  std::size_t blanks = 0;  // between its last word and the next, as they stand in the text
  const auto break_line = [&] {
    lines += '\n';
    column = 0;
    begun = false;
  };
  while (!text.empty()) {
    const std::string_view word = first_words(text);
    const std::size_t length = word.size();
    if (!word.empty()) {
      if (begun && column + blanks + text_columns(word) > columns) break_line();
      if (begun) {
        lines.append(blanks, ' ');
        column += blanks;
      } else if (column < indent && !lines.empty()) {
        lines.append(indent - column, ' ');
        column = indent;
      }
      lines += word;
      column += text_columns(word);
      begun = true;
      blanks = 0;
    }
    ++blanks;
    if (length < text.size() && text[length] == '\n') break_line();
    text.remove_prefix(std::min(length + 1, text.size()));
  }
  return lines;
}

std::string breakable(std::string_view list) {
  std::string text;
  for (const char c : list) text.append(1, c).append(c == ',' ? " " : "");
  return text;
}

std::string report_row(std::string_view name, std::string_view text, std::size_t columns) {
  constexpr std::size_t kNarrow = 60, kText = 20, kTextBelow = 6;
  std::string row = "  " + std::string(name);
  const std::size_t length = 2 + text_columns(name);
  if (columns < kNarrow || length >= kText) {
    row = name.empty() ? std::string(kTextBelow, ' ') : row + '\n' + std::string(kTextBelow, ' ');
    return row + wrapped_text(text, columns, kTextBelow, kTextBelow) + '\n';
  }
  row.append(kText - length, ' ');
  return row + wrapped_text(text, columns, kText, kText) + '\n';
}

}  // namespace sluice
