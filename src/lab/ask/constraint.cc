// `constraint`: one token's experts under a limit on misses. SPEC §4.4.
#include <algorithm>

#include "experts/routing/miss_constraint.h"
#include "lab/ask/functions.h"
#include "lab/ask/score_fields.h"

namespace sluice::lab {
namespace {
namespace constraint_function {

using experts::Standing;

constexpr Field kIn[] = {
    {"scores", "one an expert, finite numbers"},
    {"k", "experts of a token, an integer in 1..N"},
    {"sel", "an array of k ids that were selected (a set), integers in 0..N-1"},
    {"resident", "an array of ids whose MSB is in memory (a set), integers in 0..N-1"},
    {"limit", "the miss rate that is allowed, a number >= 0"},
    {"J", "best experts that are not replaced, an integer >= 0"},
    {"account", "{miss, req}: bytes so far, numbers >= 0"},
    {"size_msb", "bytes of an expert's MSB slice, a number >= 0"},
    {"size_high", "bytes of an expert at high precision, a number >= 0"},
};
constexpr Field kOut[] = {
    {"sel", "ids, best score first"},
    {"violation", "whether the limit is passed all the same"},
};

Json answer(const JsonObject& line) {
  const std::vector<double> scores = parse_scores(line, "scores");
  const std::uint32_t k = parse_k(line, scores.size());
  const std::vector<std::uint8_t> selected = parse_members(line, "sel", scores.size());
  const std::size_t count = static_cast<std::size_t>(std::ranges::count(selected, 1));
  if (count != (scores.empty() ? 0 : k)) line.fail("sel", kIn[2].text);
  const std::vector<std::uint8_t> resident = parse_members(line, "resident", scores.size());
  const JsonObject account = line.object("account");
  const experts::MissLimit limit{.rate = line.real("limit", 0, kMostNumber),
                                 .missed = account.real("miss", 0, kMostNumber),
                                 .requested = account.real("req", 0, kMostNumber),
                                 .low_bytes = line.real("size_msb", 0, kMostNumber),
                                 .high_bytes = line.real("size_high", 0, kMostNumber)};
  const std::uint32_t top_j = parse_top_j(line);

  const std::vector<std::uint32_t> ranking = ranking_of(scores);
  std::vector<Standing> standing;
  std::vector<std::uint32_t> selection;
  for (std::uint32_t id = 0; id < scores.size(); ++id) {
    standing.push_back(resident[id] != 0 ? Standing::kResident : Standing::kMissing);
    if (selected[id] != 0) selection.push_back(id);
  }
  const bool violation =
      experts::replace_missing(limit, ranking, scores, standing, top_j, selection).violation;
  std::vector<std::uint8_t> stays(scores.size());
  for (std::uint32_t id : selection) stays[id] = 1;
  Json sel = Json::array();
  for (std::uint32_t id : ranking)
    if (stays[id] != 0) sel.push_back(id);
  return {{"sel", std::move(sel)}, {"violation", violation}};
}

}  // namespace constraint_function
}  // namespace

const Function kConstraint = {.name = "constraint",
                              .section = "4.4",
                              .in = constraint_function::kIn,
                              .out = constraint_function::kOut,
                              .answer = constraint_function::answer};

}  // namespace sluice::lab
