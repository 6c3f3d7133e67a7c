// The beam search that DALI compares its assignment with: experts are placed in the order of greedy_split.h,
// and the best partial splits are kept. DALI (appendix A.2); SPEC §3.3. O(W n log W) for W partial splits.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "experts/placement/split.h"

namespace sluice::experts {

// Thread-compatible.
class BeamSplit {
 public:
  explicit BeamSplit(std::uint32_t width = 2) : width_(width) {}  // REQUIRES: width > 0

  // Sets `on_device` (n) to 1 for the experts of the device, to 0 for all others. Partial splits with the
  // least makespan are the best, then those with the least sum of both sides, then those whose device set
  // comes first: ascending places are compared one by one, and a set that is the beginning of another comes
  // first.
  SplitTimes split(const SplitCosts& costs, std::span<std::uint8_t> on_device);

 private:
  struct State {
    SplitTimes times;
    SlotCount slots;
  };
  // A state of the next round: a kept one, and one more expert on either side.
  struct Candidate {
    SplitTimes times;
    std::uint32_t parent = 0;
    bool joins = false;  // the device
  };
  std::uint64_t word_of(const Candidate& candidate, std::uint32_t place, std::size_t word) const;
  bool precedes(const Candidate& a, const Candidate& b, std::uint32_t place) const;

  std::uint32_t width_;
  std::size_t words_ = 0;  // words of a device set: one bit a place
  std::vector<RankedPlace> order_;
  std::vector<State> states_, next_states_;
  std::vector<std::uint64_t> sets_, next_sets_;  // (states, words)
  std::vector<Candidate> candidates_;
};

}  // namespace sluice::experts
