#include "eval/tasks/data_lines.h"

#include <fmt/format.h>

#include "base/setting.h"
#include "eval/tasks/python_text.h"
#include "tokenizer/text/utf8.h"

namespace sluice::eval {

void each_line(std::string_view text, const std::string& file,
               const std::function<void(std::string_view, const std::string&)>& take) {
  if (const auto bad = tokenizer::find_invalid_utf8(text))
    throw Error(ErrorKind::kInvalid, "the text is not UTF-8").in(file, *bad).fix("convert it to UTF-8 first");
  for (std::size_t number = 1; !text.empty(); ++number) {
    const std::size_t end = text.find('\n');
    std::string_view line = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (!strip(line).empty()) take(line, fmt::format("{}, line {}", file, number));
  }
}

void each_json_line(std::string_view text, const std::string& file,
                    const std::function<void(const JsonObject&)>& take) {
  each_line(text, file, [&](std::string_view line, const std::string& place) {
    const Json value = parse_json(line, place);
    take(JsonObject(value, place));
  });
}

char first_character(std::string_view text) {
  const std::size_t at = text.find_first_not_of(" \t\r\n");
  return at == std::string_view::npos ? '\0' : text[at];
}

void check_any(std::size_t items, const std::string& file) {
  if (items == 0)
    throw Error(ErrorKind::kInvalid, "the file has no items")
        .in(file)
        .fix("give the data of this task as " + Setting::kData);
}

void check_text(std::string_view value, const std::string& place, std::string_view field) {
  if (strip(value).empty())
    throw Error(ErrorKind::kInvalid, "a field is empty")
        .in(place)
        .expected(fmt::format("some text in {}", field));
}

}  // namespace sluice::eval
