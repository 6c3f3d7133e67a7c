// The body of a completions request of OpenAI's API, with the extensions.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "serve/wire/chat_prompt.h"
#include "serve/wire/fields.h"

namespace sluice::serve {

struct CompletionPrompt {
  std::vector<tokenizer::TokenId> ids;
  std::string text;         // what `echo` gives back
  std::size_t unshown = 0;  // ids at the front that are no part of the text
};

struct CompletionBody {
  std::string model;
  std::vector<CompletionPrompt> prompts;
  std::size_t max_tokens = 16, n = 1;
  std::optional<std::size_t> logprobs;
  std::vector<std::string> stops;
  bool echo = false, stream = false, include_usage = false, cache_prompt = true, return_progress = false,
       timings_per_token = false;
};

CompletionBody read_completion(const Fields& body, const Served& served, Service& service);

}  // namespace sluice::serve
