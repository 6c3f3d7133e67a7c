// An answer in which marks stand around reasoning and calls; the rest is content.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/chat/calls/answer_machine.h"
#include "tokenizer/chat/calls/call_block.h"

namespace sluice::tokenizer {

class MarkedAnswer final : public AnswerMachine {
 public:
  // Without `schema` nothing is read as a call. `sink` must outlive this.
  MarkedAnswer(const AnswerFormat& format, MarkTokens& tokens, const std::optional<ToolSchema>& schema,
               AnswerSink& sink, bool marks_first = false);

  void begin(std::string_view prompt) override;
  void append(std::string_view tagged) override;
  void finish() override;

 private:
  bool advance();  // false: more text is needed
  bool read_text();
  bool may_be_mark(std::string_view text) const;

  const ReasoningMarks reasoning_;
  const std::string reasoning_begin_, reasoning_end_;
  // A way in which calls may be written.
  struct Form {
    Form(const CallFamily& family, MarkTokens& tokens, const ToolSchema& schema)
        : marks(family, tokens), block(marks, schema) {}
    const CallMarks marks;
    CallBlock block;
  };
  std::vector<std::unique_ptr<Form>> forms_;
  CallBlock* block_ = nullptr;  // that is open
  AnswerSink& sink_;
  const bool marks_first_;         // AnswerStart::marks_first
  bool content_has_come_ = false;  // that is no blank
  BlockText text_;
};

}  // namespace sluice::tokenizer
