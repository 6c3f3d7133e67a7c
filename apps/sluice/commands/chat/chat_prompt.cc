#include "commands/chat/chat_prompt.h"

#include <utility>

#include "commands/chat/open_chat_template.h"
#include "tokenizer/chat/answer_ends.h"
#include "tokenizer/chat/calls/answer_parser.h"
#include "tokenizer/template/value_json.h"

namespace sluice::app {

ChatPrompt::ChatPrompt(const OpenModel& open, const std::string& chat_template)
    : tokenizer_(*open.tokenizer),
      template_(chat_template_of(*open.checkpoint, chat_template)),
      format_(tokenizer::answer_format(template_.source(false), {}, template_.caps(false).tools)),
      marks_are_special_(tokenizer::has_special_marks(format_, tokenizer_)) {
  tokenizer::AnswerEnds ends =
      tokenizer::answer_ends(template_.caps(false), tokenizer_, format_.reasoning.end);
  ends_ = std::move(ends.tokens);
  stop_ = std::move(ends.texts);
}

RenderedChat ChatPrompt::render(const Json& messages, Think think) const {
  tokenizer::ChatRequest request;
  request.messages = tokenizer::jinja::read_json(messages.dump(), tokenizer::Origin::kRequest);
  if (think == Think::kOn || think == Think::kOff)
    request.kwargs = tokenizer::jinja::read_json(Json({{"enable_thinking", think == Think::kOn}}).dump(),
                                                 tokenizer::Origin::kTemplate);
  const tokenizer::MarkedText text = template_.render(request);
  return {text.bytes(), tokenizer_.encode(text)};
}

}  // namespace sluice::app
