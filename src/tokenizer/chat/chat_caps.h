// What a chat template can do, found by rendering small conversations.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "tokenizer/template/value.h"
#include "tokenizer/tokenizer.h"

namespace sluice::tokenizer {

struct ChatCaps {
  bool renders = false;          // a conversation of one user message renders at all
  bool system = false;           // a system message appears
  bool developer = false;        // a developer message appears as such
  bool tools = false;            // tools appear
  bool calls = false;            // calls of tools, and their results, appear
  bool argument_object = true;   // arguments of a call are an object; else a string of JSON
  bool two_calls = false;        // two calls in one message appear
  bool parts = false;            // content in parts appears as its text
  bool thinking_switch = false;  // enable_thinking changes the prompt
  bool alternates = false;       // refuses two user messages in a row
  bool opens_thinking = false;   // the prompt ends in an open <think>
  bool nine_letter_ids = false;  // calls are named by nine letters and digits, as its family does
  std::string behind_answer;     // what follows the text of an answer, blanks at both ends left out
};

// Renders `messages` with the other variables; empty if the template refuses.
using ProbeRender = std::function<std::optional<std::string>(const jinja::Dict& variables)>;

ChatCaps probe_chat_template(const ProbeRender& render);

// The token that ends an answer: the first one behind it, if that is special ("<|im_end|>").
std::optional<TokenId> end_of_turn(const ChatCaps& caps, const Tokenizer& tokenizer);

}  // namespace sluice::tokenizer
