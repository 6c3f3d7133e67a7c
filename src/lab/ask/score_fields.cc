#include "lab/ask/score_fields.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <string>

namespace sluice::lab {

std::vector<double> parse_scores(const JsonObject& line, std::string_view key) {
  std::vector<double> scores = numbers(line, key, -kMostNumber, kMostNumber);
  if (scores.size() > static_cast<std::size_t>(kMostExperts))
    line.fail(key, "at most " + std::to_string(kMostExperts) + " numbers");
  return scores;
}

std::uint32_t parse_k(const JsonObject& line, std::size_t experts) {
  const auto n = static_cast<std::int64_t>(experts);
  return static_cast<std::uint32_t>(n == 0 ? line.integer("k", 0, kMostInteger) : line.integer("k", 1, n));
}

std::uint32_t parse_top_j(const JsonObject& line) {
  return static_cast<std::uint32_t>(line.integer("J", 0, kMostInteger));
}

std::vector<std::uint8_t> parse_members(const JsonObject& line, std::string_view key, std::size_t experts) {
  std::vector<std::uint8_t> members(experts);
  for (std::int64_t id : integers(line, key, 0, static_cast<std::int64_t>(experts) - 1))
    members[static_cast<std::size_t>(id)] = 1;
  return members;
}

ScoredTokens parse_scored_tokens(const JsonObject& line) {
  constexpr double kMostScore = 1e30;  // weights are fp32, and so are their sums
  ScoredTokens tokens;
  tokens.scores = number_rows(line, "scores", 0, kMostScore);
  if (tokens.scores.columns > static_cast<std::size_t>(kMostExperts))
    line.fail("scores", "rows of at most " + std::to_string(kMostExperts) + " numbers");
  tokens.k = parse_k(line, tokens.scores.columns);
  // Without experts nothing is selected, whatever k says.
  if (tokens.scores.columns == 0) tokens.k = 0;
  tokens.alpha = line.real("alpha", 0, kMostNumber);
  tokens.resident = parse_members(line, "resident", tokens.scores.columns);
  return tokens;
}

std::vector<std::uint32_t> ranking_of(const std::vector<double>& scores) {
  std::vector<std::uint32_t> ranking(scores.size());
  std::iota(ranking.begin(), ranking.end(), 0u);
  std::ranges::stable_sort(ranking, std::ranges::greater(), [&](std::uint32_t id) { return scores[id]; });
  return ranking;
}

}  // namespace sluice::lab
