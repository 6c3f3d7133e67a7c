// One request to a Batcher, and what comes back of it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/error.h"
#include "engine/batch/request_statistics.h"
#include "engine/grammar/answer_guide.h"
#include "engine/session/logprobs.h"
#include "engine/session/sampler.h"
#include "engine/session/stop_reason.h"
#include "tokenizer/text/token_id.h"

namespace sluice::engine {

struct BatchRequest {
  std::vector<tokenizer::TokenId> prompt;  // at least one; the encoder's input where there is an encoder
  // Most tokens of the answer, whose room is reserved; 0: the prompt is computed, nothing is drawn. Empty:
  // as many as fit.
  std::optional<std::size_t> max_tokens;
  SamplerConfig sampler;
  bool ignore_eos = false;
  std::vector<tokenizer::TokenId> ends;  // end an answer as the model's own tokens for that do
  bool cache_prompt = true;              // false: neither finds an earlier prefix nor leaves one
  // Log-probabilities of the answer's tokens are wanted, with this many of the likeliest beside each.
  std::optional<std::size_t> logprobs;
  // … and of the prompt's tokens from this one on, 1 … its tokens: what stands before may be found, and the
  // rest is computed. REQUIRES: logprobs, no encoder
  std::optional<std::size_t> prompt_logprobs;
  // What the answer is bound to; null: nothing. Nobody else uses it then. It decides when the answer
  // ends, so ignore_eos must be false.
  std::shared_ptr<AnswerGuide> guide;
};

struct BatchToken {
  tokenizer::TokenId id = 0;
  bool ends = false;                       // the model's end of an answer, which belongs to no text
  double logprob = 0;                      // if asked for, as …
  std::span<const TokenLogprob> top = {};  // … the likeliest, descending, ties by id; valid in the call only
};

// The first tokens of a prompt, or of what the decoder starts from, that others may have computed: all but
// the last of them may be found instead.
inline std::span<const tokenizer::TokenId> findable(const BatchRequest& request,
                                                    std::span<const tokenizer::TokenId> first) {
  return first.first(request.prompt_logprobs.value_or(first.size()));
}

// How a request ended. kInterrupted: cancelled. With an error there is no reason.
struct BatchEnd {
  StopReason reason = StopReason::kLength;
  std::optional<Error> error = {};
  RequestStatistics statistics = {};
};

// Gets what comes of one request, on the thread that advances the batcher; must not wait, not throw, and not
// call the batcher. Only on_end, which comes exactly once and last, must be there.
class BatchClient {
 public:
  virtual ~BatchClient() = default;
  // Asked in front of each turn, and each layer of an encoder: true ends the request, with
  // StopReason::kInterrupted.
  virtual bool wants_to_stop() { return false; }
  // Its prompt is begun, of which `cached` tokens were found.
  virtual void on_admitted(std::size_t /*cached*/) {}
  // Tokens of the prompt, cached ones too.
  virtual void on_prefill(std::size_t /*done*/, std::size_t /*total*/) {}
  // With prompt_logprobs.
  virtual void on_prompt_token(const BatchToken& /*token*/) {}
  // Those that a next token is drawn from. All those of a pass with drafts come
  // before the first on_token.
  virtual void on_logits(std::span<const float> /*logits*/) {}
  // False ends the answer behind this token, with StopReason::kStopString.
  virtual bool on_token(const BatchToken& /*token*/) { return true; }
  virtual void on_end(const BatchEnd& end) = 0;
};

}  // namespace sluice::engine
