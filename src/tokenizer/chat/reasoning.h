// What a model thinks before it answers, told apart from the answer while both come. docs/chat-templates.md.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace sluice::tokenizer {

// The texts around reasoning. Empty ones: the model has none.
struct ReasoningMarks {
  std::string begin, end;
  std::vector<std::string> dropped;  // of the answer: what stands between its parts, for programs alone
  bool special = false;              // the marks are special tokens, which a text shows only on demand
};

// By what the source of a chat template mentions: <think>, [THINK], or the channels of gpt-oss.
ReasoningMarks reasoning_marks(std::string_view template_source);

enum class AnswerPart { kReasoning, kContent };
struct AnswerPiece {
  AnswerPart part = AnswerPart::kContent;
  std::string text;  // never empty
  bool operator==(const AnswerPiece&) const = default;
};

// Cuts a text that comes in pieces. The pieces given out depend on how the text was cut only in where they
// end. Marks are left out, and blanks around them: before and behind reasoning, and before an answer that
// follows it. Nothing else is lost. Thread-compatible.
class ReasoningSplitter {
 public:
  // `prompt`: the text that the answer goes on from. It may have begun the reasoning already.
  ReasoningSplitter(ReasoningMarks marks, std::string_view prompt);
  // What has become final. A text that may become a mark is held back.
  std::vector<AnswerPiece> append(std::string_view text);
  std::vector<AnswerPiece> finish();

 private:
  struct Found;
  Found find(std::string_view text) const;
  void give(std::string_view text, std::vector<AnswerPiece>& pieces);
  void pass(const Found& mark);

  const ReasoningMarks marks_;
  std::string held_;    // may become a mark
  std::string blanks_;  // of reasoning that may end behind them
  AnswerPart part_ = AnswerPart::kContent;
  bool trims_ = false;  // leading blanks of this part are left out
};

}  // namespace sluice::tokenizer
