// The replays behind the rows of SliceMoE: systems, cache sizes and slices, each on the paper's machine.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "codec/slice_bits.h"
#include "lab/machine_replay.h"
#include "lab/synthetic_routing.h"

namespace sluice::lab {

inline constexpr double kMissRate = .05;        // the limit of rows at equal miss rate; SPEC §4.4
inline constexpr std::size_t kEarlySteps = 16;  // what an answer begins with
inline constexpr std::array<Bytes, 3> kCacheSizes = {1'800'000'000, 2'400'000'000, 3'600'000'000};
std::string mat_name(codec::SliceBits bits);  // "MAT84"

// SPEC §6, head, for a model of this shape: parameters that give about what recorded routing has (docs/
// slicemoe.md).
SyntheticRouting synthetic_like(const SlicedModel& model, std::size_t prompts, std::size_t tokens,
                                std::uint64_t seed);

// What a system costs a decode token, and what it changes.
struct SystemFigures {
  double joules = 0, seconds = 0;  // a token
  // A token, without the first ones of each answer, which no limit counts.
  double limited_joules = 0, limited_seconds = 0;
  double hbn = 0;        // miss rate of the steps that a limit counts
  double mass_lost = 0;  // share of the scores of the model's own experts that went to others
  double high = 0;       // share of experts that are critical and computed at high precision
  double msb_missed = 0, lsb_missed = 0;  // shares of slices asked for
  Energy energy;                          // a token
};
// `result` is of these steps.
SystemFigures figures_of(const RoutedSteps& steps, const MachineReplayResult& result,
                         const RoutingFacts& facts);

// visit(step of the answer, figures) for every decode step.
template <class Visit>
void for_each_decoded(const RoutedSteps& steps, const MachineReplayResult& result, Visit&& visit) {
  std::size_t in_answer = 0, decoded = 0;
  for (const RoutedStep& step : steps.steps) {
    if (step.prompt)
      in_answer = 0;
    else
      visit(in_answer++, result.steps[decoded++]);
  }
}

// Cache-Prior with all experts at high precision, in a cache of whole experts (an LRU).
MachineReplaySettings high_bit_system(const SlicedModel& model, codec::SliceBits bits, Bytes memory,
                                      double miss_rate);
// Slices by criticality, and the predicted warm-up.
MachineReplaySettings slicemoe_system(const SlicedModel& model, codec::SliceBits bits, Bytes memory,
                                      double miss_rate);
// The same with the model's own routing: no limit on misses.
MachineReplaySettings exact_slices(const SlicedModel& model, codec::SliceBits bits, Bytes memory,
                                   experts::InitialSlices initial);

// What a system would cost that loses as much score as `mass_lost`: by straight lines between those of
// `sweep`, its figures at several limits; the nearest of them beyond its ends, and then `inside` is false.
struct EqualLoss {
  double joules = 0, seconds = 0;
  bool inside = false;
};
EqualLoss at_equal_loss(std::vector<SystemFigures> sweep, double mass_lost);

}  // namespace sluice::lab
