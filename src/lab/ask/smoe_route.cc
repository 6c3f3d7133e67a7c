// `smoe_route`: the experts and weights that SMoE's router gives the tokens of a step. SPEC §2.2.
#include <vector>

#include "experts/routing/selection.h"
#include "experts/routing/smoe_choice.h"
#include "lab/ask/functions.h"
#include "lab/ask/score_fields.h"

namespace sluice::lab {
namespace {
namespace smoe_route_function {

using experts::SmoeRenorm;

constexpr Field kIn[] = {
    {"scores", "an array with a row for each token: a number >= 0 for each expert, never logits"},
    {"k", "experts of a token, an integer in 1..N"},
    {"alpha", "how far from the border a score may lie, a number >= 0"},
    {"resident", "an array of ids on the device (a set), integers in 0..N-1"},
    {"mode", "default, or printed: the paper's rule with its defects"},
    {"merge", "true or false: whether loads of few tokens give way to loads of more; in mode default"},
    {"renorm", "model, mass or none: how weights follow from the scores of the set"},
    {"norm_topk", "true or false: whether the model divides by the sum of the selected scores"},
};
constexpr Field kOut[] = {
    {"sets", "per token its ids, ascending"},
    {"weights", "per token the weights, in the same order"},
    {"substitutions", "experts of the tokens' own choices that are not in their sets, summed"},
    {"misses", "ids that are selected and not resident, ascending"},
};

SmoeRenorm parse_renorm(const JsonObject& line) {
  const std::string name = line.string("renorm");
  if (name == "model") return SmoeRenorm::kModel;
  if (name == "mass") return SmoeRenorm::kMass;
  if (name != "none") line.fail("renorm", kIn[6].text);
  return SmoeRenorm::kNone;
}

double mass_of(std::span<const std::uint32_t> set, std::span<const double> scores) {
  double mass = 0;
  for (std::uint32_t id : set) mass += scores[id];
  return mass;
}

Json answer(const JsonObject& line) {
  const ScoredTokens tokens = parse_scored_tokens(line);
  const std::string mode = line.string("mode");
  if (mode != "default" && mode != "printed") line.fail("mode", kIn[4].text);
  const bool merge = boolean(line, "merge");
  const SmoeRenorm renorm = parse_renorm(line);
  const bool norm_topk = boolean(line, "norm_topk");

  std::vector<experts::Reach> reach;
  for (const std::uint8_t resident : tokens.resident)
    reach.push_back(resident != 0 ? experts::Reach::kHost : experts::Reach::kMissing);
  experts::SmoeChoice choice;
  choice.choose({.tokens = static_cast<std::uint32_t>(tokens.scores.count),
                 .experts = static_cast<std::uint32_t>(tokens.scores.columns),
                 .top_k = tokens.k,
                 .scores = tokens.scores.values,
                 .reach = reach},
                {.alpha = tokens.alpha, .merge = merge, .printed = mode == "printed"});
  Json sets = Json::array(), weights = Json::array();
  for (std::uint32_t t = 0; t < choice.tokens(); ++t) {
    const std::span<const double> scores = tokens.scores.row(t);
    std::vector<experts::ScoredExpert> scored;
    for (std::uint32_t id : choice.set(t)) scored.push_back({static_cast<float>(scores[id]), id});
    const experts::CombineRule rule = experts::smoe_combine_rule(
        renorm, {.renormalise = norm_topk}, mass_of(choice.own(t), scores), mass_of(choice.set(t), scores));
    std::vector<experts::Choice> choices;
    experts::append_choices(rule, scored, choices);
    Json ids = Json::array(), row = Json::array();
    for (const experts::Choice& one : choices) {
      ids.push_back(one.expert);
      row.push_back(one.weight);
    }
    sets.push_back(std::move(ids));
    weights.push_back(std::move(row));
  }
  return {{"sets", std::move(sets)},
          {"weights", std::move(weights)},
          {"substitutions", choice.substitutions()},
          {"misses", choice.misses()}};
}

}  // namespace smoe_route_function
}  // namespace

const Function kSmoeRoute = {.name = "smoe_route",
                             .section = "2.2",
                             .in = smoe_route_function::kIn,
                             .out = smoe_route_function::kOut,
                             .answer = smoe_route_function::answer};

}  // namespace sluice::lab
