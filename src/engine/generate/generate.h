// Text generation for one prompt, or for several that are decoded together (a static batch), streamed as it
// comes: what `run`, `chat` and `trace` ask of a Batcher (engine/batch/batcher.h).
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine/batch/request_statistics.h"
#include "engine/session/sampler.h"
#include "engine/session/stop_reason.h"
#include "tokenizer/text/token_id.h"
#include "tokenizer/tokenizer.h"

namespace sluice::engine {

class Engine;  // engine.h

struct GenerateRequest {
  std::vector<tokenizer::TokenId> prompt;  // at least one; the encoder's input where there is an encoder
  std::size_t max_tokens = 0;              // n; with 0 nothing is computed
  SamplerConfig sampler;
  bool ignore_eos = false;
  std::vector<tokenizer::TokenId> ends;  // end an answer as the model's own tokens for that do
  // The prompt is computed from where it parts from those before it that were kept and their answers, and is
  // kept itself, whatever ends it: for conversations. An encoder-decoder keeps nothing.
  bool keep = false;
  tokenizer::ShowSpecial special = tokenizer::ShowSpecial::kNo;  // in the text
  std::vector<std::string> stop;  // generation ends before the first of these in the text; none is empty
  // Called after every token with the text that has become final (may be empty; never half a character). What
  // it throws ends the generation at that token, and comes out of generate().
  std::function<void(const std::string& text, std::size_t tokens)> on_text;
  // Asked before every step, and at the border of each sparse layer of a prompt; what it throws comes out of
  // generate(), too.
  std::function<bool()> should_stop;
};

// Tokens whose logits are made at a time where this many sequences are decoded together, for run, trace and
// plan: enough that the output head is seldom read from memory, and few enough that logits take little of a
// budget.
constexpr std::size_t generation_logit_rows(std::size_t sequences) { return sequences < 16 ? sequences : 16; }

// Whether some of the requests need room for candidates (EngineOptions::draws).
bool draws(std::span<const GenerateRequest> requests);

struct GenerateResult {
  std::vector<tokenizer::TokenId> tokens;  // including a final eos
  std::optional<std::string> text;         // without the stop string; empty without a tokenizer
  StopReason reason = StopReason::kLength;
  double prefill_s = 0;  // from generate()'s begin to the first token, or to its end where there is none
  // To the last token, from when the last prompt of the batch has got its first one.
  double decode_s = 0;
  RequestStatistics statistics;  // all 0 where nothing was computed
};
std::vector<StopReason> stop_reasons(std::span<const GenerateResult> results);  // one for each, in order

// What generate() refuses, which the plan must have room for: Error(kInvalid), (kUsage).
void check_request(const Engine& engine, const tokenizer::Tokenizer* tokenizer,
                   const GenerateRequest& request);

// Error(kInvalid) for an empty prompt and for a prompt that does not fit the context; otherwise errors as
// Engine::step. A pass that cannot read, or reads what is damaged, is tried once more. `tokenizer` may be
// null: then there is no text, and stop strings are Error(kUsage).
GenerateResult generate(Engine& engine, const tokenizer::Tokenizer* tokenizer,
                        const GenerateRequest& request);

// A static batch: prompts of any lengths share passes, as many as a chunk holds; then each step decodes one
// token of every unfinished sequence. An expert that several of them need is fetched once and multiplied as
// one small matrix product. One result per request, in order. The engine's plan must have room for as many
// sequences (EngineOptions::sequences), and for drawing where a request draws (draws()). Every sequence gets
// the tokens that it would get alone, because sums have one order for every number of tokens.
std::vector<GenerateResult> generate(Engine& engine, const tokenizer::Tokenizer* tokenizer,
                                     std::span<const GenerateRequest> requests);

}  // namespace sluice::engine
