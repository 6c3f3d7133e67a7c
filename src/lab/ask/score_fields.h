// Scores of one or more tokens and their companions, as several functions of the lab read them.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "lab/ask/fields.h"
#include "lab/ask/rows.h"

namespace sluice::lab {

// The field as an array of numbers, one per expert: at most kMostExperts.
std::vector<double> parse_scores(const JsonObject& line, std::string_view key);
// 1 to `experts`; any number >= 0 without experts, since then nothing is selected.
std::uint32_t parse_k(const JsonObject& line, std::size_t experts);
// "J", >= 0.
std::uint32_t parse_top_j(const JsonObject& line);
// The field, an array of ids below `experts` (a set), as one flag per expert.
std::vector<std::uint8_t> parse_members(const JsonObject& line, std::string_view key, std::size_t experts);
// Scores of several tokens, as SMoE's functions are asked about them: "scores" (at least 0), "k", "alpha" and
// "resident".
struct ScoredTokens {
  Rows<double> scores;  // (T, N)
  std::uint32_t k = 0;
  double alpha = 0;
  std::vector<std::uint8_t> resident;  // (N)
};
ScoredTokens parse_scored_tokens(const JsonObject& line);
// Ids by score descending, ties by id ascending.
std::vector<std::uint32_t> ranking_of(const std::vector<double>& scores);

}  // namespace sluice::lab
