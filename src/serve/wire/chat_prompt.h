// A conversation, in no API's words, and the prompt that the model's chat template makes of it.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "serve/backend.h"
#include "serve/json/body_value.h"
#include "serve/text_request.h"
#include "serve/wire/answer_binding.h"
#include "serve/wire/service.h"

namespace sluice::serve {

struct ChatPrompt {
  BodyValue messages{BodyValue::Array{}};  // checked: objects with a role
  BodyValue tools;                         // an array of {"type": "function", "function": {…}}, or null
  BodyValue kwargs;                        // an object, or null
  std::optional<std::string> reasoning_effort;
  bool add_generation_prompt = true, continue_final_message = false;
  bool parse_reasoning = true, one_call = false;
  engine::AnswerBinding binding;
};

struct PreparedPrompt {
  std::string text;
  std::vector<tokenizer::TokenId> ids;
  AnswerParsing parsing;
  std::shared_ptr<const engine::Grammar> grammar;  // null: the answer is bound to nothing
  std::vector<std::string> left_out;               // keywords of schemas that it does not hold
};

// ApiError: no template, what the template refuses, a prompt that is much too long.
PreparedPrompt prepare_prompt(const ChatPrompt& chat, const Served& served, Service& service);
// A string of the raw interface, as the tokenizer encodes it.
std::vector<tokenizer::TokenId> encode_raw(const std::string& text, tokenizer::AddSpecial add,
                                           const Served& served, Service& service, const std::string& field);
// ApiError if prompt and answer do not fit the context.
void check_length(std::size_t prompt, std::optional<std::size_t> asked, const Served& served,
                  const std::string& field);
const tokenizer::Tokenizer& need_tokenizer(const Served& served);

}  // namespace sluice::serve
