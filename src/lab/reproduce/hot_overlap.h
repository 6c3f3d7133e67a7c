// How far the experts that a prompt uses most are those that its answer begins with. SliceMoE; SPEC §6.4,
// L-F3.
#pragma once

#include <cstdint>
#include <vector>

#include "lab/routed_steps.h"

namespace sluice::lab {

struct HotOverlap {
  std::uint32_t hottest = 0;  // experts of each layer that are looked at
  // Shares of the early decode requests that go to the experts which …
  double prompt = 0;  // … the prompt used most
  double best = 0;    // … these requests themselves use most: no choice could cover more
  double chance = 0;  // … are drawn at random
};

// A sixteenth of the experts, and doubled while it is not all of them; never none.
std::vector<std::uint32_t> hot_counts(std::uint32_t experts);

// Of the first `early` decode steps behind each prompt, mean over prompts and layers; one entry for each of
// `hottest`. Ties of counts: the lower id is hotter. Prompts without steps behind them do not count.
std::vector<HotOverlap> hot_overlap(const RoutedSteps& steps, const std::vector<std::uint32_t>& hottest,
                                    std::size_t early);

}  // namespace sluice::lab
