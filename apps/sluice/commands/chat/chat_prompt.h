// Messages as the token ids that a model goes on from.
#pragma once

#include <string>
#include <vector>

#include "base/json/json.h"
#include "commands/chat/chat_settings.h"
#include "setup/open_model.h"
#include "tokenizer/chat/calls/family.h"
#include "tokenizer/chat/chat_template.h"
#include "tokenizer/text/token_id.h"

namespace sluice::app {

struct RenderedChat {
  std::string text;
  std::vector<tokenizer::TokenId> tokens;
};

// Immutable; thread-safe. Holds a reference to the tokenizer of `open`.
class ChatPrompt {
 public:
  // `chat_template`: a file, or chatml; "": the model's own. Error(kNotFound) if there is none,
  // (kInvalid) if it is none.
  ChatPrompt(const OpenModel& open, const std::string& chat_template);

  // `messages`: [{role, content, …}]. Error(kInvalid) for what the template refuses.
  RenderedChat render(const Json& messages, Think think) const;

  const std::string& place() const { return template_.place(false); }  // the template's
  const tokenizer::AnswerFormat& format() const { return format_; }
  bool marks_are_special() const { return marks_are_special_; }  // some of the format: texts must show them
  // What the template writes behind an answer: a token, or text where it is none of the tokenizer's.
  const std::vector<tokenizer::TokenId>& ends() const { return ends_; }
  const std::vector<std::string>& stop() const { return stop_; }

 private:
  const tokenizer::Tokenizer& tokenizer_;
  const tokenizer::ChatTemplate template_;
  const tokenizer::AnswerFormat format_;
  const bool marks_are_special_;
  std::vector<tokenizer::TokenId> ends_;
  std::vector<std::string> stop_;
};

}  // namespace sluice::app
