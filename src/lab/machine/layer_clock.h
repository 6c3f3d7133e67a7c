// How long one layer of one step takes, by the states in which it finds its experts. SPEC §1.3-1.6.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "experts/layer_decider.h"
#include "lab/machine/pipeline.h"

namespace sluice::lab {

// An expert that a layer uses.
struct UsedExpert {
  experts::State state = experts::State::kM;  // before the step
  std::uint32_t tokens = 0;
  experts::ExpertId id = {};
};

struct LayerTime {
  double makespan = 0;  // compute + disk + decode
  double compute = 0, disk = 0, decode = 0;
  double least = 0;  // its lower bound
  bool fallback = false;
};

// Remembers the times of small layers: equal states and tokens take equal time. Thread-compatible.
class LayerClock {
 public:
  // `decider` orders the reads, and must outlive this.
  LayerClock(const PipelineCosts& costs, experts::LayerDecider& decider) : costs_(costs), decider_(decider) {}
  // `used`: ascending by expert.
  LayerTime time(std::span<const UsedExpert> used);

 private:
  LayerTime simulate(std::span<const UsedExpert> used);

  const PipelineCosts costs_;
  experts::LayerDecider& decider_;
  std::unordered_map<std::string, LayerTime> known_;
  std::string key_;
  std::vector<experts::MissingExpert> missing_;
};

}  // namespace sluice::lab
