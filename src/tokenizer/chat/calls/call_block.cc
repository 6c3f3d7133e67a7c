#include "tokenizer/chat/calls/call_block.h"

#include <algorithm>
#include <array>
#include <utility>

namespace sluice::tokenizer {
namespace {

// functions.NAME:k, without what stands around the name.
std::string counted_name(std::string_view written) {
  constexpr std::string_view kPrefix = "functions.";
  if (written.starts_with(kPrefix)) written.remove_prefix(kPrefix.size());
  const std::size_t colon = written.rfind(':');
  const bool counted =
      colon != std::string_view::npos && colon > 0 && colon + 1 < written.size() &&
      std::ranges::all_of(written.substr(colon + 1), [](char one) { return one >= '0' && one <= '9'; });
  return std::string(counted ? written.substr(0, colon) : written);
}

}  // namespace

CallBlock::CallBlock(const CallMarks& marks, ToolSchema schema) : marks_(marks), schema_(std::move(schema)) {}

void CallBlock::begin(BlockText& text, const std::string* mark) {
  text.take(mark->size());
  any_ = separated_ = false;
  at_ = At::kNameBegin;
  if (mark == &marks_.section_begin) at_ = marks_.list_begin.empty() ? At::kBetween : At::kListBegin;
}

BlockRead CallBlock::read(BlockText& text, AnswerSink& sink) {
  for (;;) {
    const BlockRead read = step(text, sink);
    if (read == BlockRead::kGoOn) continue;
    if (read == BlockRead::kBroken) break_off(text, sink);
    return read;
  }
}

void CallBlock::finish(BlockText& text, AnswerSink& sink) {
  break_off(text, sink);
  sink.text(std::exchange(text.held, {}));
}

void CallBlock::break_off(BlockText& text, AnswerSink& sink) {
  if (sink.call_is_open()) sink.end_call();
  sink.text(std::exchange(text.taken, {}));
}

BlockRead CallBlock::step(BlockText& text, AnswerSink& sink) {
  switch (at_) {
    case At::kListBegin:
      return expect(text, marks_.list_begin, At::kBetween);
    case At::kBetween:
      return read_between(text);
    case At::kNameBegin:
      return expect(text, marks_.name_begin, At::kName);
    case At::kName:
      return read_name(text, sink);
    case At::kId:
      return read_id(text, sink);
    case At::kObject:
      return read_object(text, sink);
    case At::kParameters:
      if (const BlockRead read = parameters_.read(text, marks_, sink); read != BlockRead::kEnded) return read;
      sink.end_call();
      return end_call(text);
    case At::kJsonBegin:
      return expect(text, marks_.json_begin, At::kJson);
    case At::kJson:
      return read_json(text, sink);
    case At::kJsonEnd:
      return expect(text, marks_.json_end, At::kCallEnd);
    case At::kCallEnd:
      if (const BlockRead read = text.expect(marks_.call_end); read != BlockRead::kGoOn) return read;
      return end_call(text);
  }
  return BlockRead::kBroken;
}

BlockRead CallBlock::expect(BlockText& text, const std::string& mark, At next) {
  const BlockRead read = text.expect(mark);
  if (read == BlockRead::kGoOn) at_ = next;
  return read;
}

// A call and all its marks were read.
BlockRead CallBlock::end_call(BlockText& text) {
  text.taken.clear();
  any_ = true;
  separated_ = false;
  at_ = At::kBetween;
  return marks_.section_begin.empty() ? BlockRead::kEnded : BlockRead::kGoOn;
}

BlockRead CallBlock::go_to(BlockText& text, const std::string& mark, At next) {
  text.take(text.blanks() + mark.size());
  at_ = next;
  return BlockRead::kGoOn;
}

BlockRead CallBlock::read_between(BlockText& text) {
  const std::string_view rest = text.behind_blanks();
  if (rest.empty()) return BlockRead::kMore;
  const bool may_end = any_ && !separated_;
  const bool may_begin = marks_.separator.empty() || !may_end;
  bool perhaps = false;
  const auto stands = [&](const std::string& mark) {
    const Begins begins = mark.empty() ? Begins::kNo : begins_with(rest, mark);
    perhaps = perhaps || begins == Begins::kPerhaps;
    return begins == Begins::kYes;
  };
  if (may_begin && stands(marks_.call_begin)) return go_to(text, marks_.call_begin, At::kNameBegin);
  if (may_begin && marks_.family.body == CallBody::kObject && rest.front() == '{') {
    object_ = {};
    return go_to(text, {}, At::kObject);
  }
  if (may_end && stands(marks_.separator)) {
    separated_ = true;
    return go_to(text, marks_.separator, At::kBetween);
  }
  const std::string& end = marks_.list_end.empty() ? marks_.section_end : marks_.list_end;
  if (may_end && stands(end)) {
    text.held.erase(0, text.blanks() + end.size());
    text.taken.clear();
    return BlockRead::kEnded;
  }
  return perhaps ? BlockRead::kMore : BlockRead::kBroken;
}

// Without a mark of its own, a name ends where a parameter or the end of the call stands, which stays.
BlockRead CallBlock::read_name(BlockText& text, AnswerSink& sink) {
  const bool stays = marks_.name_end.empty();
  const std::array<const std::string*, 2> ends = stays ? std::array{&marks_.key_begin, &marks_.call_end}
                                                       : std::array{&marks_.name_end, &marks_.id_begin};
  const FoundMark end = find_mark(text.held, ends);
  const std::string_view written = std::string_view(text.held).substr(0, end.at);
  if (!may_be_name(written)) return BlockRead::kBroken;
  if (end.mark == nullptr) return BlockRead::kMore;
  name_ = without_blanks_around(written);
  if (marks_.family.ids == CallIds::kCounted) name_ = counted_name(name_);
  if (name_.empty()) return BlockRead::kBroken;
  text.take(end.at + (stays ? 0 : end.mark->size()));
  if (end.mark != &marks_.id_begin || stays) return begin_call(text, sink, {});
  at_ = At::kId;
  return BlockRead::kGoOn;
}

BlockRead CallBlock::read_id(BlockText& text, AnswerSink& sink) {
  const FoundMark end = find_mark(text.held, std::array{&marks_.name_end});
  const std::string_view written = std::string_view(text.held).substr(0, end.at);
  if (!may_be_name(written)) return BlockRead::kBroken;
  if (end.mark == nullptr) return BlockRead::kMore;
  const std::string id(without_blanks_around(written));
  text.take(end.at + end.mark->size());
  return begin_call(text, sink, id);
}

BlockRead CallBlock::begin_call(BlockText& text, AnswerSink& sink, std::string_view id) {
  sink.begin_call(name_, id);
  text.taken.clear();
  json_ = JsonCursor(JsonStrings::kLoose);
  parameters_ = ParameterBody(schema_(name_));
  at_ = marks_.family.body == CallBody::kParameters ? At::kParameters : At::kJsonBegin;
  return BlockRead::kGoOn;
}

BlockRead CallBlock::read_object(BlockText& text, AnswerSink& sink) {
  std::size_t read = 0, given = 0;  // bytes
  ObjectBody::Fed fed = ObjectBody::Fed::kTaken;
  while (read < text.held.size()) {
    fed = object_.feed(text.held[read], sink);
    if (fed == ObjectBody::Fed::kBad) break;
    ++read;
    if (fed != ObjectBody::Fed::kTaken) given = read;
    if (fed == ObjectBody::Fed::kEnded) break;
  }
  if (given > 0) text.taken.clear();
  text.taken.append(text.held, given, read - given);
  text.held.erase(0, read);
  if (fed == ObjectBody::Fed::kBad) return BlockRead::kBroken;
  return fed == ObjectBody::Fed::kEnded ? end_call(text) : BlockRead::kMore;
}

// The call ends where its JSON does, whole or not: marks that follow still belong to the call.
BlockRead CallBlock::read_json(BlockText& text, AnswerSink& sink) {
  if (!json_.started()) {
    const std::string& mark = marks_.json_end.empty() ? marks_.call_end : marks_.json_end;
    const Begins ends = mark.empty() ? Begins::kNo : begins_with(text.behind_blanks(), mark);
    if (ends == Begins::kPerhaps) return BlockRead::kMore;
    if (ends == Begins::kYes) sink.arguments("{}");
  }
  std::size_t read = 0;
  JsonCursor::Fed fed = JsonCursor::Fed::kTaken;
  std::string json;
  while (read < text.held.size() && !json_.ended()) {
    const char byte = text.held[read];
    fed = byte == kSpecialToken ? JsonCursor::Fed::kBad : json_.feed(byte);
    if (fed != JsonCursor::Fed::kTaken) break;
    ++read;
    if (json_.started()) json += byte;
  }
  if (!json.empty()) text.taken.clear();
  sink.arguments(json);
  text.held.erase(0, read);
  if (fed == JsonCursor::Fed::kTaken && !json_.ended()) return BlockRead::kMore;
  sink.end_call();
  at_ = At::kJsonEnd;
  return BlockRead::kGoOn;
}

}  // namespace sluice::tokenizer
