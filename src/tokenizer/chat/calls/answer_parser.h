// Tells reasoning, content and calls of tools apart while an answer comes (docs/chat-templates.md).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/json/json_value.h"
#include "tokenizer/chat/calls/answer_event.h"
#include "tokenizer/chat/calls/family.h"
#include "tokenizer/tokenizer.h"

namespace sluice::tokenizer {

// A tool of the request.
struct AnswerTool {
  std::string name;
  Json parameters;  // a JSON schema of an object
};

// Where an answer begins, and what may be in it.
struct AnswerStart {
  // The text that the answer goes on from: its end says whether reasoning is open already.
  std::string_view prompt;
  // The end of the prompt that is itself the beginning of the answer (ChatRequest::continue_final_message).
  // A call that has begun in it is given whole; nothing else of it is given.
  std::string_view begun;
  std::vector<AnswerTool> tools;  // none: nothing is parsed as a call
  bool any_calls = false;         // calls are parsed without tools, too
  bool marks_first = false;       // behind the first content nothing is a mark
  std::size_t past_calls = 0;     // in the messages of the conversation
  std::uint64_t seed = 0;         // for the ids of calls
};

// One answer. All events joined depend on the whole text alone, not on how it was cut. Nothing is lost: what
// cannot be a call is content as it was written, and only marks and the blanks beside them are left out. A
// special token that is no mark of the format is left out, too. Thread-compatible.
class AnswerParser {
 public:
  // `tokenizer` says which marks are special tokens: such match by their id alone. Null: all marks match by
  // their text. It and the format's family must outlive this.
  AnswerParser(const AnswerFormat& format, const Tokenizer* tokenizer, AnswerStart start);
  ~AnswerParser();
  AnswerParser(AnswerParser&&) noexcept;

  // `text`: what a StreamDecoder with ShowSpecial::kYes gave for this token. Returns what has become final.
  std::vector<AnswerEvent> append(TokenId id, std::string_view text);
  // Text without a token: what StreamDecoder::finish() gave.
  std::vector<AnswerEvent> append(std::string_view text);
  std::vector<AnswerEvent> finish();  // no call may follow

  bool reasons() const;       // what comes next is reasoning, as far as is known
  std::size_t calls() const;  // that have begun

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

// Whether some marks of the format are special tokens: texts show these only on demand (ShowSpecial).
bool has_special_marks(const AnswerFormat& format, const Tokenizer& tokenizer);

// The tools of a request in OpenAI's form: [{"type": "function", "function": {"name": …, "parameters": …}}].
// Others are left out.
std::vector<AnswerTool> answer_tools(const Json& tools);
// How many calls stand in messages: AnswerStart::past_calls.
std::size_t calls_in(const Json& messages);

}  // namespace sluice::tokenizer
