#include "lab/replay/predicted_steps.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "base/error.h"
#include "base/setting.h"
#include "experts/named_policy.h"
#include "lab/replay/logit_residual.h"

namespace sluice::lab {
namespace {

using experts::PredictorKind;

RoutedSteps read_with(const std::string& path, const std::string& predictor, RoutedStepsSettings settings,
                      const std::function<bool()>& stop) {
  const auto trace = trace::open_trace(path);
  const bool known = std::ranges::count(trace->header().ahead, predictor) > 0;
  settings.predictor = predictor;
  RoutedSteps steps;
  if (known) steps = read_routed_steps(*trace, settings, stop);
  if (steps.predicted) return steps;
  // Predictions that depend on what is in memory are made by runs with that prefetch alone.
  const experts::Named<experts::PrefetchPolicy> partial = "smoe-partial";
  const std::string asked = predictor == experts::predictor_name(partial->predictor)
                                ? " " + Setting::kPrefetch + " " + std::string(partial.name())
                                : "";
  throw Error(ErrorKind::kUsage,
              "a prefetch follows what is predicted of each next layer, and this recorded routing lacks that")
      .in(path)
      .expected("the predictions \"" + predictor + "\" of a trace that sluice trace " + Setting::kAhead +
                asked + " has made")
      .found(trace->header().format == "trace" ? known ? "layers without them" : "a trace without them"
                                               : "a ." + trace->header().format + " trace, which has none")
      .fix("add " + Setting::kPrefetch + " none, or stat or random, which predict nothing");
}

std::vector<std::uint16_t> chosen(const RoutedLayer& layer, std::uint32_t token) {
  std::vector<std::uint16_t> ids;
  for (std::uint32_t c = layer.begin[token]; c < layer.begin[token + 1]; ++c)
    ids.push_back(layer.choices[c].expert);
  return ids;
}

}  // namespace

RoutedSteps read_predicted_steps(const std::string& path, PredictorKind kind, RoutedStepsSettings settings,
                                 const std::string& other, const std::function<bool()>& stop) {
  if (kind == PredictorKind::kNone) return read_routed_steps(*trace::open_trace(path), settings, stop);
  const std::string raw(experts::predictor_name(PredictorKind::kGateInput)),
      name(experts::predictor_name(kind));
  const bool recorded = std::ranges::count(trace::open_trace(path)->header().ahead, name) > 0;
  settings.predicts_prompts = experts::predicts_prompts(kind);
  if (kind != PredictorKind::kResidual || recorded) return read_with(path, name, settings, stop);
  RoutedSteps steps = read_with(path, raw, settings, stop);
  if (other.empty())
    throw Error(
        ErrorKind::kUsage,
        "this prefetch must know by how much the inputs of neighbouring routers differ on the average")
        .in(Setting::kPrefetch)
        .expected(fmt::format("predictions {} in the trace, or routing to measure them by", name))
        .found("neither")
        .fix("name recorded routing of another text that has predictions, too: " + Setting::kRanksOf +
             " FILE");
  const RoutedSteps text = read_with(other, raw, settings, stop);
  if (!text.logits || text.layers != steps.layers || text.experts != steps.experts)
    throw Error(ErrorKind::kInvalid, "the routing by which predictions are corrected is of another model")
        .in(other)
        .expected(fmt::format("{} layers of {} experts, with router logits", steps.layers, steps.experts))
        .found(fmt::format("{} layers of {}, {} logits", text.layers, text.experts,
                           text.logits ? "with" : "without"))
        .fix("record a text with this model: sluice trace " + flag(Setting::kAhead));
  add_residuals(logit_residuals(text), steps);
  return steps;
}

experts::ExpertTransitions count_transitions(const RoutedSteps& text) {
  experts::ExpertTransitions transitions(text.layers, text.experts);
  for (const RoutedStep& step : text.steps)
    for (std::uint32_t l = 0; l + 1 < step.layers.size(); ++l) {
      const RoutedLayer &here = step.layers[l], &next = step.layers[l + 1];
      if (here.begin.empty() || next.begin.empty() || here.tokens() != next.tokens()) continue;
      for (std::uint32_t t = 0; t < here.tokens(); ++t) transitions.add(l, chosen(here, t), chosen(next, t));
    }
  return transitions;
}

}  // namespace sluice::lab
