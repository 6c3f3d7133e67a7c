#include "tokenizer/chat/calls/answer_sink.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "tokenizer/chat/calls/call_ids.h"
#include "tokenizer/chat/calls/marks.h"

namespace sluice::tokenizer {
void AnswerSink::enter(bool reasoning) {
  reasoning_ = reasoning;
  trims_ = true;
  blanks_.clear();
}

void AnswerSink::text(std::string_view tagged) {
  std::string text = blanks_ + without_tags(tagged);
  blanks_.clear();
  const std::size_t first = trims_ ? text.find_first_not_of(kAnswerBlanks) : 0;
  if (text.empty() || first == std::string::npos) return;
  text.erase(0, first);
  trims_ = false;
  const std::size_t last = text.find_last_not_of(kAnswerBlanks);
  const std::size_t kept = last == std::string::npos ? 0 : last + 1;
  blanks_ = text.substr(kept);
  text.resize(kept);
  add(reasoning_ ? Kind::kReasoning : Kind::kContent, std::move(text));
}

void AnswerSink::add(Kind kind, std::string text) {
  if (text.empty()) return;
  const bool of_call = kind == Kind::kCallArguments;
  if (!events_.empty() && events_.back().kind == kind) {
    events_.back().text += text;
    return;
  }
  events_.push_back({.kind = kind, .call = of_call ? calls_ - 1 : 0, .id = {}, .name = {}, .text = text});
}

std::string AnswerSink::new_id(std::string_view name, std::string_view written) {
  if (ids_ == CallIds::kCounted)
    return "functions." + std::string(name) + ":" + std::to_string(past_calls_ + calls_);
  if (ids_ == CallIds::kCall) return "call_" + drawn_letters(24, random_);
  return is_nine_letters(written) ? std::string(written) : drawn_letters(9, random_);
}

void AnswerSink::begin_call(std::string name, std::string_view written_id) {
  SLUICE_CHECK(!call_open_);
  enter(false);
  std::string id = new_id(name, written_id);
  events_.push_back(
      {.kind = Kind::kCallBegin, .call = calls_, .id = std::move(id), .name = std::move(name), .text = {}});
  ++calls_;
  call_open_ = true;
  has_arguments_ = false;
  arguments_ = {};
}

void AnswerSink::arguments(std::string_view json) {
  if (json.empty()) return;
  has_arguments_ = true;
  add(Kind::kCallArguments, arguments_.append(json));
}

void AnswerSink::end_call() {
  SLUICE_CHECK(call_open_);
  add(Kind::kCallArguments, arguments_.finish());
  events_.push_back({.kind = Kind::kCallEnd, .call = calls_ - 1, .id = {}, .name = {}, .text = {}});
  call_open_ = false;
  enter(false);
}

// Blanks at the very end are content, but not reasoning.
void AnswerSink::finish() {
  if (!reasoning_) add(Kind::kContent, std::exchange(blanks_, {}));
}

std::vector<AnswerEvent> AnswerSink::take() { return std::exchange(events_, {}); }

void AnswerSink::forget() {
  const auto open =
      call_open_ ? std::ranges::find_if(events_,
                                        [&](const AnswerEvent& event) {
                                          return event.kind == Kind::kCallBegin && event.call + 1 == calls_;
                                        })
                 : events_.end();
  events_.erase(events_.begin(), open);
  blanks_.clear();
}

}  // namespace sluice::tokenizer
