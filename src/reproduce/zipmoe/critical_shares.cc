#include "reproduce/zipmoe/critical_shares.h"

#include <algorithm>

#include "base/error.h"
#include "experts/routing/precision.h"

namespace sluice::reproduce {

double CriticalShares::mean() const {
  double sum = 0;
  for (std::size_t count = 0; count < shares.size(); ++count)
    sum += static_cast<double>(count) * shares[count];
  return sum;
}

std::size_t CriticalShares::most() const {
  std::size_t most = 0;
  for (std::size_t count = 0; count < shares.size(); ++count)
    if (shares[count] > 0) most = count;
  return most;
}

CriticalShares critical_shares(const lab::RoutedSteps& steps, double theta) {
  CriticalShares found{.theta = theta, .shares = std::vector<double>(steps.top_k + std::size_t{1})};
  experts::PrecisionRule rule;
  rule.critical.theta = theta;
  double tokens = 0;
  for (const lab::RoutedStep& step : steps.steps) {
    if (step.prompt) continue;
    for (const lab::RoutedLayer& layer : step.layers) {
      if (layer.begin.empty()) continue;
      experts::Routing routing;
      routing.choices = layer.choices;
      routing.begin = layer.begin;
      experts::set_precision(rule, routing);
      for (std::uint32_t t = 0; t < layer.tokens(); ++t) {
        found.shares[static_cast<std::size_t>(std::ranges::count(routing.token(t), experts::Precision::kHigh,
                                                                 &experts::Choice::precision))] += 1;
        tokens += 1;
      }
    }
  }
  SLUICE_CHECK(tokens > 0, "no decode steps");
  for (double& share : found.shares) share /= tokens;
  return found;
}

}  // namespace sluice::reproduce
