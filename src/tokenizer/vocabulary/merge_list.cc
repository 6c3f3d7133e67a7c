#include "tokenizer/vocabulary/merge_list.h"

#include <fmt/format.h>

#include "base/error.h"
#include "tokenizer/text/printable.h"

namespace sluice::tokenizer {

void MergeList::add_part(std::string_view part) {
  SLUICE_CHECK(arena_.size() + part.size() <= UINT32_MAX);
  arena_ += part;
  ends_.push_back(static_cast<std::uint32_t>(arena_.size()));
}

MergeList::Rule MergeList::operator[](std::size_t rule) const {
  const std::size_t begin = rule == 0 ? 0 : ends_[2 * rule - 1];
  const std::size_t middle = ends_[2 * rule];
  const std::string_view arena = arena_;
  return {arena.substr(begin, middle - begin), arena.substr(middle, ends_[2 * rule + 1] - middle)};
}

void add_merge_line(MergeList& merges, std::string_view line, const std::string& where) {
  const std::size_t space = line.find(' ');
  if (space == std::string_view::npos || line.find(' ', space + 1) != std::string_view::npos) {
    throw Error(ErrorKind::kInvalid, "not a merge rule")
        .in(where)
        .expected("two tokens with one space between them")
        .found(printable(line))
        .fix("download the tokenizer files again");
  }
  merges.add_part(line.substr(0, space));
  merges.add_part(line.substr(space + 1));
}

MergeList read_merges_text(std::string_view text, const std::string& name) {
  MergeList merges;
  std::size_t line_number = 0;
  while (!text.empty()) {
    ++line_number;
    const std::size_t end = text.find('\n');
    std::string_view line = text.substr(0, end);
    text = end == std::string_view::npos ? std::string_view() : text.substr(end + 1);
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.starts_with("#version")) continue;
    if (line.empty() && text.empty()) break;
    add_merge_line(merges, line, fmt::format("{}: line {}", name, line_number));
  }
  return merges;
}

}  // namespace sluice::tokenizer
