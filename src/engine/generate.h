// Text generation: prefill, then one token at a time, streamed as it comes, for one prompt or for several
// prompts that are decoded together (a static batch).
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/draft/draft_counts.h"
#include "engine/session/sampler.h"
#include "tokenizer/text/token_id.h"
#include "tokenizer/tokenizer.h"

namespace sluice::engine {

class Engine;  // engine.h

struct GenerateRequest {
  std::vector<tokenizer::TokenId> prompt;  // at least one; the encoder's input where there is an encoder
  std::size_t max_tokens = 0;              // n
  SamplerConfig sampler;
  bool ignore_eos = false;
  std::vector<tokenizer::TokenId> ends;  // end an answer as the model's own tokens for that do
  tokenizer::ShowSpecial special = tokenizer::ShowSpecial::kNo;  // in the text
  std::vector<std::string> stop;  // generation ends before the first of these in the text; none is empty
  // Called after every token with the text that has become final (may be empty; never half a character). What
  // it throws ends the generation at that token, and comes out of generate().
  std::function<void(const std::string& text, std::size_t tokens)> on_text;
  std::function<bool()> should_stop;  // asked before every step; what it throws comes out of generate(), too
};

// Tokens whose logits are made at a time where so many sequences are decoded together, for run, trace and
// plan: enough that the output head is seldom read from memory, and few enough that logits take little of a
// budget.
constexpr std::size_t generation_logit_rows(std::size_t sequences) { return sequences < 16 ? sequences : 16; }

// Whether some of the requests need room for candidates (EngineOptions::draws).
bool draws(std::span<const GenerateRequest> requests);

// kLength: max_tokens are there. kContext: fewer are, and the sequence has no room for another.
enum class StopReason { kLength, kContext, kEos, kStopString, kInterrupted };
std::string_view stop_reason_name(StopReason reason);  // "length" "context" "eos" "stop" "interrupted"

struct GenerateResult {
  std::vector<tokenizer::TokenId> tokens;  // including a final eos
  std::optional<std::string> text;         // without the stop string; empty without a tokenizer
  StopReason reason = StopReason::kLength;
  std::size_t kept = 0;                // tokens of the prompt that a Conversation held already
  double prefill_s = 0, decode_s = 0;  // from the start to the first token, and from there to the last
  DraftCounts drafts;
};
std::vector<StopReason> stop_reasons(std::span<const GenerateResult> results);  // of each, in order

// What generate() refuses, which the plan must have room for: Error(kInvalid), (kUsage).
void check_request(const Engine& engine, const tokenizer::Tokenizer* tokenizer,
                   const GenerateRequest& request);

// Error(kInvalid) for an empty prompt and for a prompt that does not fit the context; otherwise errors as
// Engine::step. `tokenizer` may be null: then there is no text, and stop strings are Error(kUsage).
GenerateResult generate(Engine& engine, const tokenizer::Tokenizer* tokenizer,
                        const GenerateRequest& request);

// A static batch: prompts of any lengths are prefilled one after the other; then each step decodes one token
// of every unfinished sequence, so that an expert that several of them need is fetched once and multiplied as
// one small matrix product. One result per request, in order. The engine's plan must have room for as many
// sequences (EngineOptions::sequences), and for drawing where a request draws (draws()). Every sequence gets
// the tokens that it would get alone, because sums have one order for every number of tokens.
std::vector<GenerateResult> generate(Engine& engine, const tokenizer::Tokenizer* tokenizer,
                                     std::span<const GenerateRequest> requests);

}  // namespace sluice::engine
