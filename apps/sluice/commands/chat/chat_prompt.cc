#include "commands/chat/chat_prompt.h"

#include "commands/chat/open_chat_template.h"
#include "tokenizer/template/value_json.h"

namespace sluice::app {
ChatPrompt::ChatPrompt(const OpenModel& open, const std::string& chat_template)
    : tokenizer_(*open.tokenizer),
      template_(chat_template_of(*open.checkpoint, chat_template)),
      marks_(tokenizer::reasoning_marks(template_.source(false))) {
  const std::string& behind = template_.caps(false).behind_answer;
  if (behind.empty()) return;
  const std::vector<tokenizer::TokenId> tokens = tokenizer_.encode(tokenizer::MarkedText(behind));
  const std::string first = tokenizer_.decode({tokens.data(), 1}, tokenizer::ShowSpecial::kYes);
  if (!tokenizer_.is_special(tokens[0]))
    stop_.push_back(behind);
  else if (first != marks_.end)  // which ends the reasoning, and not the answer
    ends_.push_back(tokens[0]);
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
