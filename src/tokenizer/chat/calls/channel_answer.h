// An answer of messages whose headers say what they are, as gpt-oss writes it.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "tokenizer/chat/calls/answer_machine.h"
#include "tokenizer/chat/calls/block_text.h"

namespace sluice::tokenizer {

class ChannelAnswer final : public AnswerMachine {
 public:
  // `sink` must outlive this.
  ChannelAnswer(MarkTokens& tokens, bool parse_calls, AnswerSink& sink);

  void begin(std::string_view prompt) override;
  void append(std::string_view tagged) override;
  void finish() override;

 private:
  enum class At { kBetween, kHeader, kBody };
  struct Header {
    std::string channel, recipient;
  };
  bool advance();  // false: more text is needed
  bool read_between();
  bool read_header();
  bool read_body();
  void begin_body(const std::optional<Header>& header, std::string_view written);
  bool may_be_header(std::string_view begun) const;
  std::optional<Header> parsed(std::string_view header) const;  // empty: it is none

  const std::string start_, channel_, constrain_, message_, end_, call_, return_;
  const bool parse_calls_;
  AnswerSink& sink_;
  At at_ = At::kHeader;
  BlockText text_;
};

}  // namespace sluice::tokenizer
