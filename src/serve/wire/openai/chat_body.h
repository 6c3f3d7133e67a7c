// The body of a chat request of OpenAI's API, with the extensions.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "serve/wire/chat_prompt.h"
#include "serve/wire/fields.h"

namespace sluice::serve {

struct ChatBody {
  ChatPrompt chat;
  std::string model;  // as the client calls it; empty: it does not
  std::optional<std::size_t> max_tokens, logprobs;
  std::size_t n = 1;
  std::vector<std::string> stops;
  bool stream = false, include_usage = false, cache_prompt = true;
  bool return_progress = false, timings_per_token = false,
       functions = false;  // functions: those, and no tools
};

// ApiError naming the field.
ChatBody read_chat(const Fields& body);

}  // namespace sluice::serve
