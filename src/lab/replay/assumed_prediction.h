// Predictions for routing that has none: right as often as somebody says. Stated assumptions, for simulations
// alone; a recorded prediction is always better evidence. SPEC §10, G14.
#pragma once

#include <cstdint>

#include "lab/replay/routed_steps.h"

namespace sluice::lab {

// Gives each layer behind the first predicted logits: each of a token's experts stays with probability
// `right`, and is else replaced by one of the others, drawn with `seed`. The predicted experts of a token
// have logits of the order of their recorded weights, all others lower ones.
void assume_predictions(double right, std::uint64_t seed, RoutedSteps& steps);

// The same of the layers' own logits, each with a normal error of this standard deviation, drawn with `seed`.
// REQUIRES: steps with logits.
void assume_errors(double deviation, std::uint64_t seed, RoutedSteps& steps);

}  // namespace sluice::lab
