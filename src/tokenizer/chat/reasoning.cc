#include "tokenizer/chat/reasoning.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <utility>

namespace sluice::tokenizer {
namespace {

constexpr std::string_view kBlanks = " \t\r\n";

// A row: what a template mentions, and the marks of such models.
struct MarksRow {
  std::string_view mentioned, begin, end;
  std::vector<std::string> dropped;
  bool special;
};
const std::vector<MarksRow>& rows() {
  static const std::vector<MarksRow> kRows = {
      {"<|channel|>",
       "<|channel|>analysis<|message|>",
       "<|end|>",
       {"<|start|>assistant", "<|channel|>final<|message|>"},
       true},
      {"[THINK]", "[THINK]", "[/THINK]", {}, true},
      {"<think>", "<think>", "</think>", {}, false},
      {"</think>", "<think>", "</think>", {}, false},
  };
  return kRows;
}

// How long a proper beginning of `mark` the text ends with.
std::size_t begun(std::string_view text, std::string_view mark) {
  for (std::size_t length = std::min(text.size(), mark.size() - 1); length > 0; --length)
    if (text.ends_with(mark.substr(0, length))) return length;
  return 0;
}

}  // namespace

ReasoningMarks reasoning_marks(std::string_view template_source) {
  for (const MarksRow& row : rows())
    if (template_source.find(row.mentioned) != std::string_view::npos)
      return {std::string(row.begin), std::string(row.end), row.dropped, row.special};
  return {};
}

// The first mark of a text: where it begins, its length, and the part that begins behind it. Without one:
// where a mark may begin.
struct ReasoningSplitter::Found {
  std::size_t at = 0, length = 0;
  AnswerPart next = AnswerPart::kContent;
};

ReasoningSplitter::ReasoningSplitter(ReasoningMarks marks, std::string_view prompt)
    : marks_(std::move(marks)) {
  if (marks_.begin.empty()) return;
  const std::size_t last = prompt.find_last_not_of(kBlanks);
  if (last != std::string_view::npos && prompt.substr(0, last + 1).ends_with(marks_.begin)) {
    part_ = AnswerPart::kReasoning;
    trims_ = true;
  }
}

ReasoningSplitter::Found ReasoningSplitter::find(std::string_view text) const {
  Found first{text.size(), 0, part_};
  std::size_t held = 0;
  const auto look = [&](std::string_view mark, AnswerPart next) {
    held = std::max(held, begun(text, mark));
    const std::size_t at = text.find(mark);
    if (at < first.at) first = {at, mark.size(), next};
  };
  if (marks_.begin.empty()) return first;
  if (part_ == AnswerPart::kReasoning) {
    look(marks_.end, AnswerPart::kContent);
  } else {
    look(marks_.begin, AnswerPart::kReasoning);
    for (const std::string& dropped : marks_.dropped) look(dropped, AnswerPart::kContent);
  }
  if (first.length == 0) first.at -= held;
  return first;
}

// Gives out text of the present part, its blanks trimmed where a mark stands beside them.
void ReasoningSplitter::give(std::string_view text, std::vector<AnswerPiece>& pieces) {
  if (trims_) {
    const std::size_t first = text.find_first_not_of(kBlanks);
    if (first == std::string_view::npos) return;
    text.remove_prefix(first);
    trims_ = false;
  }
  if (text.empty()) return;
  std::string given;
  if (part_ == AnswerPart::kReasoning) {
    given = std::exchange(blanks_, {}).append(text);
    const std::size_t last = given.find_last_not_of(kBlanks);
    const std::size_t kept = last == std::string::npos ? 0 : last + 1;
    blanks_ = given.substr(kept);
    given.resize(kept);
  } else {
    given = text;
  }
  if (given.empty()) return;
  if (!pieces.empty() && pieces.back().part == part_)
    pieces.back().text += given;
  else
    pieces.push_back({part_, std::move(given)});
}

void ReasoningSplitter::pass(const Found& mark) {
  trims_ = trims_ || mark.next != part_;
  part_ = mark.next;
  blanks_.clear();
}

std::vector<AnswerPiece> ReasoningSplitter::append(std::string_view text) {
  std::vector<AnswerPiece> pieces;
  held_ += text;
  for (;;) {
    const Found found = find(held_);
    give(std::string_view(held_).substr(0, found.at), pieces);
    held_.erase(0, found.at + found.length);
    if (found.length == 0) return pieces;
    pass(found);
  }
}

std::vector<AnswerPiece> ReasoningSplitter::finish() {
  std::vector<AnswerPiece> pieces;
  give(std::exchange(held_, {}), pieces);
  return pieces;
}

}  // namespace sluice::tokenizer
