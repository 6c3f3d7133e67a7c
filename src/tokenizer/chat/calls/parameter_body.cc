#include "tokenizer/chat/calls/parameter_body.h"

#include <array>
#include <string_view>

#include "tokenizer/chat/calls/argument_text.h"
#include "tokenizer/chat/calls/parameter_value.h"

namespace sluice::tokenizer {
namespace {

constexpr std::string_view kIsString = "string=\"true\"", kIsJson = "string=\"false\"";

}  // namespace

BlockRead ParameterBody::read(BlockText& text, const CallMarks& marks, AnswerSink& sink) {
  switch (at_) {
    case At::kParameter:
      return read_parameter(text, marks, sink);
    case At::kKey:
      return read_key(text, marks);
    case At::kAttributes:
      return read_attributes(text, marks);
    case At::kValue:
      return read_value(text, marks, sink);
  }
  return BlockRead::kBroken;
}

BlockRead ParameterBody::read_parameter(BlockText& text, const CallMarks& marks, AnswerSink& sink) {
  const BlockRead key = text.expect(marks.key_begin);
  if (key == BlockRead::kGoOn) {
    at_ = At::kKey;
    return key;
  }
  const BlockRead end = text.expect(marks.call_end);
  if (end == BlockRead::kGoOn) {
    sink.arguments(any_ ? "}" : "{}");
    text.taken.clear();
    return BlockRead::kEnded;
  }
  return key == BlockRead::kMore ? key : end;
}

BlockRead ParameterBody::read_key(BlockText& text, const CallMarks& marks) {
  const FoundMark end = find_mark(text.held, std::array{&marks.key_end});
  const std::string_view key = std::string_view(text.held).substr(0, end.at);
  if (!may_be_name(key)) return BlockRead::kBroken;
  if (end.mark == nullptr) return BlockRead::kMore;
  key_ = without_blanks_around(key);
  if (key_.empty()) return BlockRead::kBroken;
  text.take(end.at + end.mark->size());
  is_string_.reset();
  at_ = At::kAttributes;
  return BlockRead::kGoOn;
}

// What stands between a key and its value.
BlockRead ParameterBody::read_attributes(BlockText& text, const CallMarks& marks) {
  if (!marks.value_begin.empty() && !is_string_) {
    for (const std::string_view attribute : {kIsString, kIsJson}) {
      const Begins begins = begins_with(text.behind_blanks(), attribute);
      if (begins == Begins::kPerhaps) return BlockRead::kMore;
      if (begins == Begins::kNo) continue;
      is_string_ = attribute == kIsString;
      text.take(text.blanks() + attribute.size());
      break;
    }
  }
  const BlockRead read = text.expect(marks.value_begin);
  if (read == BlockRead::kGoOn) at_ = At::kValue;
  return read;
}

BlockRead ParameterBody::read_value(BlockText& text, const CallMarks& marks, AnswerSink& sink) {
  const std::size_t end = text.find(marks.value_end);
  if (end == std::string::npos) return BlockRead::kMore;
  std::string value = without_tags(std::string_view(text.held).substr(0, end));
  if (marks.family.lines) {
    if (value.starts_with('\n')) value.erase(0, 1);
    if (value.ends_with('\n')) value.pop_back();
  }
  text.take(end + marks.value_end.size());
  sink.arguments((any_ ? ", " : "{") + quoted_json(key_) + ": " +
                 parameter_json(value, schema_, key_, is_string_));
  text.taken.clear();
  any_ = true;
  at_ = At::kParameter;
  return BlockRead::kGoOn;
}

}  // namespace sluice::tokenizer
