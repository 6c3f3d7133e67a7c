// How often predicted top-score experts are what they are taken for. SMoE, figure 18; SPEC §2.3.
#pragma once

#include <cstdint>

#include "lab/replay/routed_steps.h"

namespace sluice::reproduce {

// Over the decode steps and the layers behind the first; an expert counts once a step and layer.
struct TopScoreAccuracy {
  std::uint64_t predicted = 0;  // top-score for some token, as predicted …
  std::uint64_t top = 0;        // … and truly top-score for some token
  std::uint64_t active = 0;     // … or at least chosen by some token
  double precision() const { return share(top); }
  double active_share() const { return share(active); }

 private:
  double share(std::uint64_t part) const {
    return predicted == 0 ? 0 : static_cast<double>(part) / static_cast<double>(predicted);
  }
};

// `alpha`: as the router's. REQUIRES: steps with logits, and with predictions in their decode steps.
TopScoreAccuracy top_score_accuracy(const lab::RoutedSteps& steps, double alpha);

}  // namespace sluice::reproduce
