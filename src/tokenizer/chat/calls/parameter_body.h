// The body of a call whose parameters stand one by one between marks, as text.
#pragma once

#include <optional>
#include <string>

#include "base/json/json_value.h"
#include "tokenizer/chat/calls/answer_sink.h"
#include "tokenizer/chat/calls/block_text.h"
#include "tokenizer/chat/calls/call_marks.h"

namespace sluice::tokenizer {

// Gives whole parameters, which joined are one object of JSON. Thread-compatible.
class ParameterBody {
 public:
  // `schema` of the tool's parameters; null: unknown.
  explicit ParameterBody(const Json* schema = nullptr) : schema_(schema) {}
  // Reads up to the mark that ends the call. kGoOn stands for one step.
  BlockRead read(BlockText& text, const CallMarks& marks, AnswerSink& sink);

 private:
  enum class At { kParameter, kKey, kAttributes, kValue };
  BlockRead read_parameter(BlockText& text, const CallMarks& marks, AnswerSink& sink);
  BlockRead read_key(BlockText& text, const CallMarks& marks);
  BlockRead read_attributes(BlockText& text, const CallMarks& marks);
  BlockRead read_value(BlockText& text, const CallMarks& marks, AnswerSink& sink);

  const Json* schema_;
  At at_ = At::kParameter;
  bool any_ = false;  // a parameter was given
  std::string key_;
  std::optional<bool> is_string_;  // what the model says of the value
};

}  // namespace sluice::tokenizer
