#include "eval/tasks/choice_request.h"

#include <fmt/format.h>

#include "base/error.h"
#include "base/setting.h"
#include "eval/tasks/python_text.h"

namespace sluice::eval {

std::vector<ChoiceRequest> encode_choices(const tokenizer::Tokenizer& tokenizer, const ChoiceItem& item,
                                          std::size_t most_tokens, const std::string& place) {
  const std::string_view context = rstrip(item.context);
  const std::vector<tokenizer::TokenId> context_ids = tokenizer.encode(context, tokenizer::AddSpecial::kYes);
  if (context_ids.empty()) throw Error(ErrorKind::kInvalid, "the question has no tokens").in(place);
  std::vector<ChoiceRequest> requests;
  for (std::size_t choice = 0; choice < item.choices.size(); ++choice) {
    const std::vector<tokenizer::TokenId> whole =
        tokenizer.encode(item.context + " " + item.choices[choice], tokenizer::AddSpecial::kYes);
    if (whole.size() <= context_ids.size())
      throw Error(ErrorKind::kInvalid, fmt::format("choice {} adds no token to the question", choice + 1))
          .in(place)
          .expected("an answer that can be scored");
    const std::size_t answer = whole.size() - context_ids.size();
    if (answer > most_tokens)
      throw Error(ErrorKind::kInvalid, fmt::format("choice {} is longer than the context", choice + 1))
          .in(place)
          .expected(fmt::format("at most {} tokens", most_tokens))
          .found(std::to_string(answer))
          .fix("raise " + Setting::kCtx + " if the model's context allows it");
    ChoiceRequest request;
    request.context_tokens = context_ids.size();
    const std::size_t kept = std::min(context_ids.size(), most_tokens + 1 - answer);
    request.tokens.assign(context_ids.end() - static_cast<std::ptrdiff_t>(kept), context_ids.end());
    request.tokens.insert(request.tokens.end(), whole.end() - static_cast<std::ptrdiff_t>(answer),
                          whole.end());
    request.scored = kept;
    requests.push_back(std::move(request));
  }
  return requests;
}

}  // namespace sluice::eval
