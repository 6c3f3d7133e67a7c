// A block of calls in an answer, from its first mark to its last one, read while it comes.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "base/json/json_value.h"
#include "tokenizer/chat/calls/answer_sink.h"
#include "tokenizer/chat/calls/block_text.h"
#include "tokenizer/chat/calls/call_marks.h"
#include "tokenizer/chat/calls/json_cursor.h"
#include "tokenizer/chat/calls/object_body.h"
#include "tokenizer/chat/calls/parameter_body.h"

namespace sluice::tokenizer {

// The schema of a tool's parameters, by its name; null: there is no such tool.
using ToolSchema = std::function<const Json*(std::string_view name)>;

// Thread-compatible.
class CallBlock {
 public:
  // `marks` must outlive this.
  CallBlock(const CallMarks& marks, ToolSchema schema);

  // `mark`, at which the text stands, is the beginning of a section or of a call.
  void begin(BlockText& text, const std::string* mark);
  // Reads what it can. Once it returns kEnded or kBroken the rest is no part of the block. What of it is no
  // call was given as text.
  BlockRead read(BlockText& text, AnswerSink& sink);
  // No more text comes, and the block has not ended.
  void finish(BlockText& text, AnswerSink& sink);

 private:
  enum class At {
    kListBegin,
    kBetween,  // calls, or at the end
    kNameBegin,
    kName,
    kId,
    kObject,
    kParameters,
    kJsonBegin,
    kJson,
    kJsonEnd,
    kCallEnd
  };
  BlockRead step(BlockText& text, AnswerSink& sink);
  BlockRead expect(BlockText& text, const std::string& mark, At next);
  BlockRead read_between(BlockText& text);
  BlockRead go_to(BlockText& text, const std::string& mark, At next);
  BlockRead read_name(BlockText& text, AnswerSink& sink);
  BlockRead read_id(BlockText& text, AnswerSink& sink);
  BlockRead begin_call(BlockText& text, AnswerSink& sink, std::string_view id);
  BlockRead read_object(BlockText& text, AnswerSink& sink);
  BlockRead read_json(BlockText& text, AnswerSink& sink);
  BlockRead end_call(BlockText& text);
  static void break_off(BlockText& text, AnswerSink& sink);

  const CallMarks& marks_;
  const ToolSchema schema_;
  At at_ = At::kBetween;
  bool any_ = false;        // a call was in this block
  bool separated_ = false;  // a separator was read behind it
  std::string name_;
  ObjectBody object_;
  ParameterBody parameters_;
  JsonCursor json_{JsonStrings::kLoose};
};

}  // namespace sluice::tokenizer
