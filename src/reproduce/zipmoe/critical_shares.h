// How many experts of a token are critical. SliceMoE; SPEC §4.3, §6.4, L-crit.
#pragma once

#include <vector>

#include "lab/replay/routed_steps.h"

namespace sluice::reproduce {

// Shares of tokens of a layer that have 0, 1, … critical experts.
struct CriticalShares {
  double theta = 0;
  std::vector<double> shares;
  double mean() const;
  std::size_t most() const;  // the largest number that a token has
};

// For the decode steps, by the weights of their choices: single-head θ. REQUIRES: there are decode steps.
CriticalShares critical_shares(const lab::RoutedSteps& steps, double theta);

}  // namespace sluice::reproduce
