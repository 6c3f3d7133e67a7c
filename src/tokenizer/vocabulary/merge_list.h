// Merge rules as files give them: pairs of token contents in file order, in one arena.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace sluice::tokenizer {

class MergeList {
 public:
  void add_part(std::string_view part);  // left, right, left, right …
  std::size_t size() const { return ends_.size() / 2; }
  struct Rule {
    std::string_view left, right;
  };
  Rule operator[](std::size_t rule) const;

 private:
  std::string arena_;
  std::vector<std::uint32_t> ends_;  // end of each part in the arena
};

// Adds "left right", as in merges.txt and older tokenizer.json files. Error(kInvalid) in `where` for any
// other line.
void add_merge_line(MergeList& merges, std::string_view line, const std::string& where);

// merges.txt: "left right" per line; lines that begin with "#version" are comments.
MergeList read_merges_text(std::string_view text, const std::string& name);

}  // namespace sluice::tokenizer
