// Our variant of DALI's cache: the work of a layer's experts is averaged with weights that fade, and a few
// clear gains are taken after each step. SPEC §3.5, `workload-ema`.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "experts/cache/workload/workload_swaps.h"

namespace sluice::experts {

struct EmaRules {
  double gamma = .8;  // weight of the past. [0, 1)
  double ratio =
      1.1;  // a newcomer needs more than so many times the score of the expert that leaves; at least 1
  std::uint32_t swaps = 2;  // at most so many a step
};

// One layer. The caller owns the set of residents and carries the swaps out. Allocates nothing once it has
// seen a step. Thread-compatible.
class WorkloadEma {
 public:
  WorkloadEma(std::uint32_t experts, const EmaRules& rules);  // REQUIRES: valid rules

  // Counts tokens of the running step, (N) by expert; may be called several times, as for the chunks of a
  // prompt.
  void add(std::span<const std::uint32_t> tokens);
  // The running step is over, a decode step of the whole batch or a prompt. Returns the swaps. resident: (N).
  // Valid until the next call.
  std::span<const Swap> end_step(std::span<const std::uint8_t> resident);
  // For prompts in chunks, which are one step together: the swaps after a chunk, as if the step had ended;
  // forget() ends it. chunk() and then forget() are end_step().
  std::span<const Swap> chunk(std::span<const std::uint8_t> resident);
  void forget();

  std::uint32_t experts() const { return static_cast<std::uint32_t>(tokens_.size()); }
  void grow(std::uint32_t experts);  // to at least so many; new ones have no tokens yet

 private:
  void average();  // into next_: the scores if the running step ended now

  EmaRules rules_;
  std::vector<double> tokens_, score_, next_;  // (N): of the running step; averaged; scratch
  WorkloadSwaps swaps_;
};

}  // namespace sluice::experts
