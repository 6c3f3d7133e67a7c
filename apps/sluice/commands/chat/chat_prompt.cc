#include "commands/chat/chat_prompt.h"

#include "commands/chat/open_chat_template.h"
#include "tokenizer/chat/calls/answer_parser.h"
#include "tokenizer/chat/chat_caps.h"
#include "tokenizer/template/value_json.h"

namespace sluice::app {

ChatPrompt::ChatPrompt(const OpenModel& open, const std::string& chat_template)
    : tokenizer_(*open.tokenizer),
      template_(chat_template_of(*open.checkpoint, chat_template)),
      format_(tokenizer::answer_format(template_.source(false), {}, template_.caps(false).tools)),
      marks_are_special_(tokenizer::has_special_marks(format_, tokenizer_)) {
  const tokenizer::ChatCaps& caps = template_.caps(false);
  if (const auto end = tokenizer::end_of_turn(caps, tokenizer_)) {
    // The token that ends reasoning does not end the answer.
    if (tokenizer_.decode({&*end, 1}, tokenizer::ShowSpecial::kYes) != format_.reasoning.end)
      ends_.push_back(*end);
  } else if (!caps.behind_answer.empty()) {
    stop_.push_back(caps.behind_answer.substr(0, caps.behind_answer.find('\n')));
  }
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
