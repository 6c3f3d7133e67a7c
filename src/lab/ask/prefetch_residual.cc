// `prefetch_residual`: which experts of the next layer DALI fetches, given gate inputs. SPEC §3.4.
#include <vector>

#include "experts/prefetch/residual.h"
#include "experts/prefetch/workload_forecast.h"
#include "lab/ask/functions.h"
#include "lab/ask/score_fields.h"

namespace sluice::lab {
namespace {
namespace prefetch_residual_function {

constexpr Field kIn[] = {
    {"h", "an array with a row for each token: the d numbers that this layer's gate sees"},
    {"res", "d numbers: the mean difference to what the next layer's gate sees"},
    {"gate", "an array with a row of d numbers for each expert of the next layer"},
    {"k", "experts of a token, an integer in 1..N"},
    {"resident", "an array of ids on the device (a set), integers in 0..N-1"},
    {"size", "at most this many experts are fetched, an integer >= 0"},
};
constexpr Field kOut[] = {
    {"predicted", "per token its ids, ascending"},
    {"counts", "by expert, the tokens that are predicted to choose it"},
    {"list", "ids to fetch, in order"},
};

Json answer(const JsonObject& line) {
  const std::vector<double> res = numbers(line, "res", -kMostNumber, kMostNumber);
  const Rows<double> h = number_rows(line, "h", -kMostNumber, kMostNumber);
  const Rows<double> gate = number_rows(line, "gate", -kMostNumber, kMostNumber);
  const bool fits_h = h.count == 0 || h.columns == res.size();
  const bool fits_gate = gate.count == 0 || gate.columns == res.size();
  if (!fits_h || !fits_gate) {
    line.fail(fits_h      ? "gate"
              : fits_gate ? "h"
                          : "res",
              "rows of h and of gate as long as res, which has " + std::to_string(res.size()) + " numbers");
  }
  if (gate.count > static_cast<std::size_t>(kMostExperts))
    line.fail("gate", "at most " + std::to_string(kMostExperts) + " rows");
  const std::uint32_t k = parse_k(line, gate.count);
  const std::vector<std::uint8_t> resident = parse_members(line, "resident", gate.count);
  const std::int64_t size = line.integer("size", 0, kMostInteger);

  experts::ResidualPrediction prediction;
  prediction.predict(h.count, gate.count, h.values, res, gate.values);
  experts::WorkloadForecast forecast;
  forecast.predict({.tokens = static_cast<std::uint32_t>(h.count),
                    .experts = static_cast<std::uint32_t>(gate.count),
                    .top_k = gate.count == 0 ? 0 : k,
                    .logits = prediction.logits(),
                    .scores = prediction.scores()});
  Json predicted = Json::array();
  for (std::uint32_t t = 0; t < h.count; ++t) predicted.push_back(forecast.predicted(t));
  return {{"predicted", std::move(predicted)},
          {"counts", forecast.counts()},
          {"list", forecast.order(resident, static_cast<std::size_t>(size))}};
}

}  // namespace prefetch_residual_function
}  // namespace

const Function kPrefetchResidual = {.name = "prefetch_residual",
                                    .section = "3.4",
                                    .in = prefetch_residual_function::kIn,
                                    .out = prefetch_residual_function::kOut,
                                    .answer = prefetch_residual_function::answer};

}  // namespace sluice::lab
