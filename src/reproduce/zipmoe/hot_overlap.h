// How far the experts that a prompt uses most agree with those that its answer begins with. SliceMoE; SPEC
// §6.4, L-F3.
#pragma once

#include <cstdint>
#include <vector>

#include "lab/replay/routed_steps.h"

namespace sluice::reproduce {

struct HotOverlap {
  std::uint32_t hottest = 0;  // how many experts of each layer are compared
  // Shares of the early decode requests that go to …
  double prompt = 0;  // … the experts that the prompt used most
  double best = 0;    // … the experts that these requests use most: no choice could cover more
  double chance = 0;  // … experts drawn at random
};

// A sixteenth of the experts, doubled repeatedly while that is not all experts; at least one.
std::vector<std::uint32_t> hot_counts(std::uint32_t experts);

// Over the first `early` decode steps behind each prompt: the mean over prompts and layers, one entry for
// each of `hottest`. Ties of counts: the lower id is hotter. Prompts without decode steps are not counted.
std::vector<HotOverlap> hot_overlap(const lab::RoutedSteps& steps, const std::vector<std::uint32_t>& hottest,
                                    std::size_t early);

}  // namespace sluice::reproduce
