// Predictions for recorded routing that has none: right as often as somebody says. A stated assumption, for
// simulations alone; a prediction of recorded logits is always better evidence. SPEC §10, G14.
#pragma once

#include <cstdint>

#include "lab/replay/routed_steps.h"

namespace sluice::lab {

// Gives each layer behind the first predicted logits: each of a token's experts stays with probability
// `right`, and is else replaced by one of the others, drawn with `seed`. The predicted experts of a token
// have logits of the order of their recorded weights, all others lower ones.
void assume_predictions(double right, std::uint64_t seed, RoutedSteps& steps);

}  // namespace sluice::lab
