// Batches out of recorded sequences, for replays of what a server computes together.
#pragma once

#include <cstdint>

#include "lab/replay/routed_steps.h"

namespace sluice::lab {

// `batch` sequences at a time, in the order of the trace: each decode step has one step of each of them. One
// that has ended is replaced by the next, until fewer than `batch` are left; what those would still decode is
// left out. The steps of a prompt come when its sequence joins, each by itself. REQUIRES: batch > 0, and each
// step of one sequence only.
RoutedSteps batched(const RoutedSteps& steps, std::uint32_t batch);

// How many sequences have something to decode: with a larger batch there is no decode step. REQUIRES: each
// step of one sequence only.
std::uint32_t largest_batch(const RoutedSteps& steps);

}  // namespace sluice::lab
