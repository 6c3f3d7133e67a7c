// `residual`: the mean difference of gate inputs from each layer to the next. SPEC §3.4.
#include <vector>

#include "experts/prefetch/residual.h"
#include "lab/ask/functions.h"
#include "lab/ask/rows.h"

namespace sluice::lab {
namespace {
namespace residual_function {

constexpr Field kIn[] = {
    {"h", "an array of layers, each an array with a row of d numbers for each token"},
};
constexpr Field kOut[] = {
    {"res", "per layer but the last, d numbers; empty without tokens"},
};

Json answer(const JsonObject& line) {
  std::vector<Rows<double>> layers;
  for (const Json& layer : array_of(line, "h", kIn[0].text)) {
    const std::string place = "h[" + std::to_string(layers.size()) + "]";
    if (layers.empty()) {
      layers.push_back(number_rows_at(line, place, layer, -kMostNumber, kMostNumber));
      continue;
    }
    const Rows<double>& first = layers.front();
    if (layer.is_array() && layer.size() != first.count)
      fail_at(line, place, std::to_string(first.count) + " tokens, as in h[0]", layer.size());
    layers.push_back(number_rows_at(line, place, layer, -kMostNumber, kMostNumber, first.columns));
  }
  experts::ResidualMean residual(layers.size(), layers.empty() ? 0 : layers[0].columns);
  Json res = Json::array();
  for (std::size_t l = 0; l + 1 < layers.size(); ++l) {
    for (std::size_t t = 0; t < layers[l].count; ++t) residual.add(l, layers[l].row(t), layers[l + 1].row(t));
    res.push_back(residual.mean(l));
  }
  return {{"res", std::move(res)}};
}

}  // namespace residual_function
}  // namespace

const Function kResidual = {.name = "residual",
                            .section = "3.4",
                            .in = residual_function::kIn,
                            .out = residual_function::kOut,
                            .answer = residual_function::answer};

}  // namespace sluice::lab
