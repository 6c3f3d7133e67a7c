// `cumsum`: one token's experts when resident experts come first among the likely ones. SPEC §4.5.
#include <algorithm>
#include <cmath>

#include "experts/routing/cached_choice.h"
#include "lab/ask/functions.h"
#include "lab/ask/score_fields.h"

namespace sluice::lab {
namespace {
namespace cumsum_function {

constexpr Field kIn[] = {
    {"z", "logits, one an expert, finite numbers"},
    {"k", "experts to select, an integer in 1..N"},
    {"cached", "an array of ids in memory (a set), integers in 0..N-1"},
    {"J", "best experts that come first, an integer >= 0"},
    {"p", "probability that the likely ones must reach, a number in 0..1"},
};
constexpr Field kOut[] = {
    {"sel", "ids in order of selection"},
};

std::vector<double> softmax(const std::vector<double>& z) {
  std::vector<double> s;
  const double most = *std::ranges::max_element(z);
  double sum = 0;
  for (double one : z) {
    s.push_back(std::exp(one - most));
    sum += s.back();
  }
  for (double& one : s) one /= sum;
  return s;
}

Json answer(const JsonObject& line) {
  const std::vector<double> z = parse_scores(line, "z");
  const std::uint32_t k = parse_k(line, z.size());
  const std::vector<std::uint8_t> cached = parse_members(line, "cached", z.size());
  const std::uint32_t top_j = parse_top_j(line);
  const double p = line.real("p", 0, 1);
  std::vector<std::uint32_t> selection;
  if (!z.empty()) experts::select_cumsum(ranking_of(z), softmax(z), cached, p, top_j, k, selection);
  return {{"sel", selection}};
}

}  // namespace cumsum_function
}  // namespace

const Function kCumsum = {.name = "cumsum",
                          .section = "4.5",
                          .in = cumsum_function::kIn,
                          .out = cumsum_function::kOut,
                          .answer = cumsum_function::answer};

}  // namespace sluice::lab
