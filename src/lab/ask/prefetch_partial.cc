// `prefetch_partial`: which experts of the next layer SMoE fetches, given predicted scores. SPEC §2.3.
#include "experts/prefetch/top_score_queue.h"
#include "lab/ask/functions.h"
#include "lab/ask/score_fields.h"

namespace sluice::lab {
namespace {
namespace prefetch_partial_function {

constexpr Field kIn[] = {
    {"scores", "an array with a row for each token: a predicted number >= 0 for each expert, never logits"},
    {"k", "experts of a token, an integer in 1..N"},
    {"alpha", "how far above the border a top score lies, a number >= 0"},
    {"resident", "an array of ids on the device (a set), integers in 0..N-1"},
    {"filter", "true or false: whether only top-score experts are wanted, or all of the top k"},
};
constexpr Field kOut[] = {
    {"top", "per token the ids that it wants, ascending"},
    {"list", "ids to fetch, in order"},
};

Json answer(const JsonObject& line) {
  const ScoredTokens tokens = parse_scored_tokens(line);
  const bool filter = boolean(line, "filter");
  experts::TopScoreQueue queue;
  queue.predict({.tokens = static_cast<std::uint32_t>(tokens.scores.count),
                 .experts = static_cast<std::uint32_t>(tokens.scores.columns),
                 .top_k = tokens.k,
                 .scores = tokens.scores.values},
                tokens.alpha, !filter, tokens.resident);
  Json top = Json::array();
  for (std::uint32_t t = 0; t < tokens.scores.count; ++t) top.push_back(queue.wanted(t));
  return {{"top", std::move(top)}, {"list", queue.order()}};
}

}  // namespace prefetch_partial_function
}  // namespace

const Function kPrefetchPartial = {.name = "prefetch_partial",
                                   .section = "2.3",
                                   .in = prefetch_partial_function::kIn,
                                   .out = prefetch_partial_function::kOut,
                                   .answer = prefetch_partial_function::answer};

}  // namespace sluice::lab
