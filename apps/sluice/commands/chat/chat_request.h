// What a chat template renders, as users write it down.
#pragma once

#include <string>
#include <vector>

#include "tokenizer/chat/chat_template.h"

namespace sluice::app {

tokenizer::ChatRequest one_message(const std::string& text);
// JSON: a list of messages, or an object of a request. `name` names the text in errors: Error(kInvalid).
tokenizer::ChatRequest read_chat_request(const std::string& json, const std::string& name);
// Each is NAME=JSON; what is no JSON is a string. Error(kUsage) without a name.
void add_template_variables(const std::vector<std::string>& variables, tokenizer::ChatRequest& request);

}  // namespace sluice::app
