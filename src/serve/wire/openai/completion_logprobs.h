// Log-probabilities as the completions of OpenAI's API write them: columns, a map for each token.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "serve/answer_event.h"
#include "serve/backend.h"

namespace sluice::serve {

// A token's text, or "bytes:\xe2\x80" where it is no text by itself, or
// "token_id:7" where the model has no tokenizer.
std::string token_text(tokenizer::TokenId id, const Served& served);

class CompletionLogprobs {
 public:
  explicit CompletionLogprobs(const Served& served) : served_(served) {}
  // A token without a probability: the first of a prompt. `shown`: it is a part of the text.
  void add_first(tokenizer::TokenId id, bool shown);
  void add(const ScoredToken& token, bool shown = true);
  // The object of what has been added since the last call; offsets go on.
  std::string take();
  bool empty() const { return tokens_.empty(); }

 private:
  struct Row {
    tokenizer::TokenId id;
    std::size_t offset;
    bool has_logprob;
    ScoredToken scored;
  };
  void add_row(Row row, bool shown);

  const Served& served_;
  std::vector<Row> tokens_;
  std::size_t offset_ = 0;  // code points of the text so far
};

}  // namespace sluice::serve
