// `cache_prior`: one token's experts when resident experts are preferred. SPEC §4.5.
#include <algorithm>

#include "experts/routing/cached_choice.h"
#include "lab/ask/functions.h"
#include "lab/ask/score_fields.h"

namespace sluice::lab {
namespace {
namespace cache_prior_function {

constexpr Field kIn[] = {
    {"z", "logits, one an expert, finite numbers"},
    {"k", "experts to select, an integer in 1..N"},
    {"cached", "an array of ids in memory (a set), integers in 0..N-1"},
    {"J", "best experts that are treated as if they were in memory, an integer >= 0"},
    {"lambda", "share of delta that is added, a number in 0..1"},
    {"delta", "range of the logits, a number >= 0"},
};
constexpr Field kOut[] = {
    {"sel", "ids in order of selection"},
};

Json answer(const JsonObject& line) {
  const std::vector<double> z = parse_scores(line, "z");
  const std::uint32_t k = parse_k(line, z.size());
  const std::vector<std::uint8_t> cached = parse_members(line, "cached", z.size());
  const std::uint32_t top_j = parse_top_j(line);
  const double lambda = line.real("lambda", 0, 1), delta = line.real("delta", 0, kMostNumber);
  std::vector<std::uint32_t> selection;
  if (!z.empty()) experts::select_cache_prior(ranking_of(z), z, cached, lambda * delta, top_j, k, selection);
  return {{"sel", selection}};
}

}  // namespace cache_prior_function
}  // namespace

const Function kCachePrior = {.name = "cache_prior",
                              .section = "4.5",
                              .in = cache_prior_function::kIn,
                              .out = cache_prior_function::kOut,
                              .answer = cache_prior_function::answer};

}  // namespace sluice::lab
