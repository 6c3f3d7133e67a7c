// `rank`: the maximum-entropy law of the sets of k experts with given frequencies. SPEC §1.8.
#include "experts/plan/rank_model.h"

#include <cmath>

#include "lab/ask/functions.h"
#include "lab/ask/ranks.h"

namespace sluice::lab {
namespace {
namespace rank_function {

constexpr Field kIn[] = {
    {"f", "by rank, descending: how often the expert is used, numbers in [0, 1] whose sum is k"},
    {"k", "experts used in a step, an integer in 1..N"},
    {"update", "odds or ratio"},
};
constexpr Field kOut[] = {
    {"w", "weights, geometric mean 1; null where f is 1, 0 where f is 0"},
    {"q", "probabilities of independent draws with the same law, given that k are drawn"},
    {"phi", "the probability that 0..N are drawn"},
    {"iterations", "updates made"},
};

Json answer(const JsonObject& line) {
  const Ranks ranks = parse_ranks(line);
  const std::string update = line.string("update");
  if (update != "odds" && update != "ratio") line.fail("update", kIn[2].text);
  const experts::RankModel model = make_rank_model(
      ranks.f, ranks.k, update == "odds" ? experts::WeightUpdate::kOdds : experts::WeightUpdate::kRatio);
  Json w = Json::array();
  for (double weight : model.w) w.push_back(std::isinf(weight) ? Json() : Json(weight));
  return {{"w", std::move(w)}, {"q", model.q}, {"phi", model.phi}, {"iterations", model.iterations}};
}

}  // namespace rank_function
}  // namespace

const Function kRank = {.name = "rank",
                        .section = "1.8",
                        .in = rank_function::kIn,
                        .out = rank_function::kOut,
                        .answer = rank_function::answer};

}  // namespace sluice::lab
