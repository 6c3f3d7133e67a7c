// The replays behind SliceMoE's rows: systems, cache sizes and slices, each on the paper's machine.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "codec/slices/slice_bits.h"
#include "lab/machine/machine_replay.h"
#include "lab/replay/synthetic_routing.h"

namespace sluice::reproduce {

inline constexpr double kMissRate = .05;        // the limit for rows at equal miss rate; SPEC §4.4
inline constexpr std::size_t kEarlySteps = 16;  // steps that count as the beginning of an answer
inline constexpr std::array<Bytes, 3> kCacheSizes = {1'800'000'000, 2'400'000'000, 3'600'000'000};
std::string mat_name(codec::SliceBits bits);  // "MAT84"

// The synthetic routing of SPEC §6 for a model of this shape: parameters that come close to recorded routing
// (docs/slicemoe.md).
lab::SyntheticRouting synthetic_like(const lab::SlicedModel& model, std::size_t prompts, std::size_t tokens,
                                     std::uint64_t seed);

// What a system costs per decode token, and what it changes.
struct SystemFigures {
  double joules = 0, seconds = 0;  // per token
  // Per token, without the first tokens of each answer, which no limit counts.
  double limited_joules = 0, limited_seconds = 0;
  double hbn = 0;                         // miss rate of the steps that a limit counts
  double mass_lost = 0;                   // share of score mass moved from the model's own experts to others
  double high = 0;                        // share of experts that are critical and computed at high precision
  double msb_missed = 0, lsb_missed = 0;  // as shares of slices asked for
  lab::Energy energy;                     // per token
};
// `result` belongs to these steps.
SystemFigures figures_of(const lab::RoutedSteps& steps, const lab::MachineReplayResult& result,
                         const lab::RoutingFacts& facts);

// Calls visit(step of the answer, figures) for every decode step.
template <class Visit>
void for_each_decoded(const lab::RoutedSteps& steps, const lab::MachineReplayResult& result, Visit&& visit) {
  std::size_t in_answer = 0, decoded = 0;
  for (const lab::RoutedStep& step : steps.steps) {
    if (step.prompt)
      in_answer = 0;
    else
      visit(in_answer++, result.steps[decoded++]);
  }
}

// Cache-Prior with all experts at high precision, in a cache of whole experts (an LRU).
lab::MachineReplaySettings high_bit_system(const lab::SlicedModel& model, codec::SliceBits bits, Bytes memory,
                                           double miss_rate);
// Slices by criticality, with the predicted warm-up.
lab::MachineReplaySettings slicemoe_system(const lab::SlicedModel& model, codec::SliceBits bits, Bytes memory,
                                           double miss_rate);
// The same with the model's own routing and no limit on misses.
lab::MachineReplaySettings exact_slices(const lab::SlicedModel& model, codec::SliceBits bits, Bytes memory,
                                        experts::InitialSlices initial);

// The cost of a system that loses as much score as `mass_lost`: interpolated linearly in `sweep`, its figures
// at several limits. Beyond the ends of the sweep: the nearest figures, and `inside` is false.
struct EqualLoss {
  double joules = 0, seconds = 0;
  bool inside = false;
};
EqualLoss at_equal_loss(std::vector<SystemFigures> sweep, double mass_lost);

}  // namespace sluice::reproduce
