#include "base/wrapped_text.h"

#include <algorithm>
#include <iterator>

namespace sluice {
namespace {

// Whether a line may not be broken between these words.
bool belong_together(std::string_view number, std::string_view unit) {
  constexpr std::string_view kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB",  "MB",   "GB",
                                         "%", "s",   "ms",  "µs",  "GB/s", "tok/s"};
  if (number.empty() || number.back() < '0' || number.back() > '9') return false;
  unit = unit.substr(0, unit.find_last_not_of(",;:.)") + 1);
  return std::find(std::begin(kUnits), std::end(kUnits), unit) != std::end(kUnits);
}

// The words at the start of `text` that stay on one line.
std::string_view first_words(std::string_view text) {
  const std::size_t end = std::min(text.find_first_of(" \n"), text.size());
  if (end == text.size() || text[end] == '\n') return text.substr(0, end);
  const std::string_view rest = text.substr(end + 1);
  const std::string_view next = rest.substr(0, rest.find_first_of(" \n"));
  return text.substr(0, belong_together(text.substr(0, end), next) ? end + 1 + next.size() : end);
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
