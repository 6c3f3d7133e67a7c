// DALI's residual prediction out of recorded logits. Its predictor gives the next layer's router the gate
// input h of this layer plus r, the mean of what the next layer's input differs by. A router is linear, so
// its logits are those of h alone (predictor `raw`) plus its product with r; and that is the mean, over the
// same text, of the next layer's true logits less the raw ones. So neither gate inputs nor router matrices
// are needed. DALI (eq. 10, 11); SPEC §3.4.
#pragma once

#include <cstdint>
#include <vector>

#include "lab/replay/routed_steps.h"

namespace sluice::lab {

// By sparse layer, (N) to add to the raw logits of that layer; empty for the first.
using LogitResiduals = std::vector<std::vector<double>>;

// Calibrates with a text. REQUIRES: it has logits, and those that `raw` predicted.
LogitResiduals logit_residuals(const RoutedSteps& text);

// Turns predictions of `raw` into those of `residual`. REQUIRES: the same shape.
void add_residuals(const LogitResiduals& residuals, RoutedSteps& steps);

}  // namespace sluice::lab
