// What routing with all scores is like: by the rank of a score, how high it is and how often its expert is
// used again. SMoE, figures 4 and 11.
#pragma once

#include <vector>

#include "lab/replay/routed_steps.h"
#include "lab/replay/synthetic_routing.h"

namespace sluice::reproduce {

struct RankFigures {
  // (N) each, rank 1 first; means over the decode tokens and layers of all sequences.
  std::vector<double> score;  // softmax over all experts
  std::vector<double> reuse;  // the share of experts of that rank that the sequence's next token chooses
};

// REQUIRES: steps of one sequence each, with logits, of which two follow each other.
RankFigures rank_figures(const lab::RoutedSteps& steps);
// Those of the decoded tokens, with the same requirements; `mass` is of the softmax over all experts.
lab::RoutingFacts routing_facts(const lab::RoutedSteps& steps);

}  // namespace sluice::reproduce
