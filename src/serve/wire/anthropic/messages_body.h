// The body of a request of Anthropic's API, brought into the conversation that chat templates know.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "serve/wire/chat_prompt.h"
#include "serve/wire/fields.h"

namespace sluice::serve {

struct MessagesBody {
  ChatPrompt chat;
  std::string model;
  std::size_t max_tokens = 0;
  Sampling sampling;
  std::vector<std::string> stops;
  bool stream = false;
};

struct MessagesRules {
  bool needs_max_tokens = true;      // false: tokens are counted, and nothing is answered
  bool keep_billing_header = false;  // a line of the system's text that changes with every call
};
MessagesBody read_anthropic(const Fields& body, const Served& served, const MessagesRules& rules);

}  // namespace sluice::serve
