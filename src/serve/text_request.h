// What a client asks for, in no API's words: the ids of a prompt, and how it goes on.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/grammar/grammar.h"
#include "tokenizer/text/token_id.h"

namespace sluice::serve {

struct Sampling {
  double temperature = 1.0;  // 0: the likeliest token
  double top_p = 1.0;        // 1: off
  double min_p = 0.0;        // 0: off
  std::int64_t top_k = 0;    // 0: off
  double repetition_penalty = 1.0;
  double presence_penalty = 0.0, frequency_penalty = 0.0;
  std::vector<std::pair<tokenizer::TokenId, double>> logit_bias;  // −100 forbids
  std::uint64_t seed = 0;
  bool ignore_eos = false;
};

// What a request that gives nothing gets.
struct SamplingDefaults {
  Sampling sampling;  // temperature 0 where the model's own file says do_sample: false
  // The user of the command line gave the penalties: they act at temperature 0, too.
  bool penalties_by_user = false;
};

struct ToolSpec {
  std::string name;
  std::string parameters;  // JSON, the schema of its arguments; empty: none was given
};

// How the text of a chat's answer is taken apart. Without it the text is given as it is.
struct AnswerParsing {
  bool reasoning = true;        // false: it stays in the text, with its marks
  bool calls = false;           // calls of tools are looked for
  bool one_call = false;        // parallel_tool_calls: false
  bool bound = false;           // to a form: behind the first content nothing is taken for a mark
  std::vector<ToolSpec> tools;  // tools of the request
  std::size_t past_calls = 0;   // in the history
  std::string prompt_tail;      // the prompt's last text, which may have begun a part of the answer
};

struct TextRequest {
  std::vector<tokenizer::TokenId> prompt;  // at least one
  std::optional<std::size_t> max_tokens;   // empty: as many as fit; 0: nothing is drawn
  Sampling sampling;
  std::vector<std::string> stops;                  // none is empty
  bool cache_prompt = true;                        // false: neither finds an earlier prefix nor leaves one
  std::optional<std::size_t> logprobs;             // wanted, with this many of the likeliest beside each
  bool prompt_logprobs = false;                    // also of the prompt's tokens but the first; with logprobs
  bool progress = false;                           // PrefillProgress events are wanted often
  std::optional<AnswerParsing> parsing;            // for a chat
  std::shared_ptr<const engine::Grammar> grammar;  // that the answer is bound to; null: none
};

}  // namespace sluice::serve
