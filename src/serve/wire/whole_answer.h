// One sequence's answer, put together of its events.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "serve/answer_event.h"

namespace sluice::serve {

struct WholeAnswer {
  struct Call {
    std::string id, name, arguments;
  };
  std::string text, reasoning;
  std::vector<Call> calls;
  std::vector<ScoredToken> tokens, prompt_tokens;
  std::optional<Finish> finish;

  void take(const AnswerEvent& event) {
    if (const auto* delta = std::get_if<TextDelta>(&event.body)) {
      text += delta->text;
      tokens.insert(tokens.end(), delta->tokens.begin(), delta->tokens.end());
    } else if (const auto* thought = std::get_if<ReasoningDelta>(&event.body)) {
      reasoning += thought->text;
    } else if (const auto* begin = std::get_if<ToolBegin>(&event.body)) {
      calls.push_back({begin->id, begin->name, {}});
    } else if (const auto* arguments = std::get_if<ToolArguments>(&event.body)) {
      if (!calls.empty()) calls.back().arguments += arguments->fragment;
    } else if (const auto* scores = std::get_if<PromptScores>(&event.body)) {
      prompt_tokens.insert(prompt_tokens.end(), scores->tokens.begin(), scores->tokens.end());
    } else if (const auto* end = std::get_if<Finish>(&event.body)) {
      finish = *end;
    }
  }
};

}  // namespace sluice::serve
