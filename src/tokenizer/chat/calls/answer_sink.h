// Collects the events of an answer, without the blanks between its parts.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/splitmix64.h"
#include "tokenizer/chat/calls/answer_event.h"
#include "tokenizer/chat/calls/argument_text.h"
#include "tokenizer/chat/calls/family.h"

namespace sluice::tokenizer {

// Texts are tagged (marks.h), and given out without their tags. Thread-compatible.
class AnswerSink {
 public:
  AnswerSink(CallIds ids, std::size_t past_calls, std::uint64_t seed)
      : ids_(ids), past_calls_(past_calls), random_(seed) {}

  // From here on the text is reasoning, or content. Blanks at both sides of a change are left out, as they
  // are where a mark has stood.
  void enter(bool reasoning);
  bool reasons() const { return reasoning_; }
  void text(std::string_view tagged);  // text of the part that was entered last

  void begin_call(std::string name, std::string_view written_id = {});
  bool call_is_open() const { return call_open_; }
  void arguments(std::string_view json);  // JSON of a value as the model wrote it; a string gives its content
  bool has_arguments() const { return has_arguments_; }
  void end_call();

  void finish();
  std::vector<AnswerEvent> take();
  void forget();  // all events but those of a call that is open
  std::size_t calls() const { return calls_; }

 private:
  using Kind = AnswerEvent::Kind;
  void add(Kind kind, std::string text);
  std::string new_id(std::string_view name, std::string_view written);

  const CallIds ids_;
  const std::size_t past_calls_;
  SplitMix64 random_;
  std::vector<AnswerEvent> events_;
  std::string blanks_;  // behind the text, which may end there
  bool reasoning_ = false, trims_ = false, call_open_ = false, has_arguments_ = false;
  std::size_t calls_ = 0;  // that have begun
  ArgumentText arguments_;
};

}  // namespace sluice::tokenizer
