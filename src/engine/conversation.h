// A sequence that is kept from one prompt to the next: a prompt that begins as the last one and its answer
// did is prefilled from where they part.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "engine/generate.h"
#include "tokenizer/text/token_id.h"

namespace sluice::engine {

class Sequence;  // session/sequence.h

// Thread-compatible. Holds one sequence of the engine, which must outlive it.
class Conversation {
 public:
  // Error(kUnsupported) for a model with an encoder: its input is not a text that goes on.
  explicit Conversation(Engine& engine);
  ~Conversation();

  // Tokens that the prompt and what is held begin with alike, less one where that is all of the prompt.
  std::size_t alike(const std::vector<tokenizer::TokenId>& prompt) const;

  // As engine::generate() of one request, with the same tokens bit for bit. result.kept says how many tokens
  // of the prompt needed no computing. Also after an interrupt or an Error what was computed is kept.
  GenerateResult generate(const tokenizer::Tokenizer* tokenizer, const GenerateRequest& request);

 private:
  Engine& engine_;
  const std::unique_ptr<Sequence> sequence_;
  std::vector<tokenizer::TokenId> tokens_;  // whose keys and values the sequence holds
};

}  // namespace sluice::engine
