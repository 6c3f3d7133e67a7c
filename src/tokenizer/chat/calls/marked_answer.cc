#include "tokenizer/chat/calls/marked_answer.h"

#include <algorithm>
#include <array>
#include <utility>

namespace sluice::tokenizer {

MarkedAnswer::MarkedAnswer(const AnswerFormat& format, MarkTokens& tokens,
                           const std::optional<ToolSchema>& schema, AnswerSink& sink, bool marks_first)
    : reasoning_(format.reasoning),
      reasoning_begin_(tokens.tagged(reasoning_.begin)),
      reasoning_end_(tokens.tagged(reasoning_.end)),
      sink_(sink),
      marks_first_(marks_first) {
  // Without tools the marks are text, special tokens or not.
  for (const CallFamily* family : {format.family, format.told}) {
    if (family == nullptr) continue;
    auto form = std::make_unique<Form>(*family, tokens, schema.value_or(nullptr));
    if (schema) forms_.push_back(std::move(form));
  }
}

void MarkedAnswer::begin(std::string_view prompt) {
  if (reasoning_.begin.empty()) return;
  while (!prompt.empty() && kAnswerBlanks.find(prompt.back()) != std::string_view::npos)
    prompt.remove_suffix(1);
  if (prompt.ends_with(reasoning_.begin))
    sink_.enter(true);
  else if (prompt.ends_with(reasoning_.end))
    sink_.enter(false);
}

void MarkedAnswer::append(std::string_view tagged) {
  text_.held += tagged;
  while (!text_.held.empty() && advance()) {
  }
}

bool MarkedAnswer::advance() {
  if (block_ == nullptr) return read_text();
  if (block_->read(text_, sink_) == BlockRead::kMore) return false;
  block_ = nullptr;
  return true;
}

// Whether a mark stands at the beginning of the text, or may come to.
bool MarkedAnswer::may_be_mark(std::string_view text) const {
  if (begins_with(text, reasoning_begin_) != Begins::kNo && !reasoning_begin_.empty()) return true;
  return std::ranges::any_of(forms_, [&](const auto& form) {
    return std::ranges::any_of(
        std::array{&form->marks.section_begin, &form->marks.call_begin},
        [&](const std::string* mark) { return !mark->empty() && begins_with(text, *mark) != Begins::kNo; });
  });
}

// Reads up to a mark, and past it. Calls begin within reasoning only by a special token, which nothing but a
// call is begun with.
bool MarkedAnswer::read_text() {
  if (marks_first_ && !sink_.reasons()) {
    const std::size_t first = text_.held.find_first_not_of(kAnswerBlanks);
    const bool perhaps =
        first == std::string::npos || may_be_mark(std::string_view(text_.held).substr(first));
    content_has_come_ = content_has_come_ || !perhaps;
    if (content_has_come_) {
      sink_.text(std::exchange(text_.held, {}));
      return false;
    }
  }
  const std::string* const other = sink_.reasons() ? &reasoning_end_ : &reasoning_begin_;
  std::vector<const std::string*> looked_for = {other};
  for (const auto& form : forms_)
    for (const std::string* mark : {&form->marks.section_begin, &form->marks.call_begin})
      if (!sink_.reasons() || mark->starts_with(kSpecialToken)) looked_for.push_back(mark);
  const FoundMark found = find_mark(text_.held, looked_for);
  sink_.text(std::string_view(text_.held).substr(0, found.at));
  text_.held.erase(0, found.at);
  if (found.mark == nullptr) return false;
  if (found.mark == other) {
    text_.held.erase(0, other->size());
    sink_.enter(!sink_.reasons());
    return true;
  }
  if (sink_.reasons()) sink_.enter(false);
  const auto form = std::ranges::find_if(forms_, [&](const auto& one) {
    return found.mark == &one->marks.section_begin || found.mark == &one->marks.call_begin;
  });
  block_ = &(*form)->block;
  block_->begin(text_, found.mark);
  return true;
}

void MarkedAnswer::finish() {
  if (block_ != nullptr) block_->finish(text_, sink_);
  sink_.text(std::exchange(text_.held, {}));
  sink_.finish();
}

}  // namespace sluice::tokenizer
