// DALI's cache: the work of a layer's experts is counted over a window of steps; then the residents with
// least of it give way to other experts with more. DALI (Alg. 2), its slips mended; SPEC §3.5.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "experts/cache/workload/workload_swaps.h"

namespace sluice::experts {

struct WindowRules {
  std::uint32_t steps = 4;  // steps of a window; at least 1
  std::uint32_t swaps = 8;  // at most so many at its end
  // Swaps that gain nothing are made, too, as the paper prints it: costs transfers, and evicts useful
  // experts.
  bool unconditional = false;
};

// One layer. The caller owns the set of residents and carries the swaps out. Allocates nothing once it has
// seen a step. Thread-compatible.
class WorkloadWindow {
 public:
  WorkloadWindow(std::uint32_t experts, const WindowRules& rules);  // REQUIRES: rules.steps > 0

  // Counts tokens of the running step, (N) by expert; may be called several times, as for the chunks of a
  // prompt.
  void add(std::span<const std::uint32_t> tokens);
  // The running step is over: a decode step of the whole batch, or a prompt, which ends the window whatever
  // its length. Returns the swaps; none within a window. resident: (N). Valid until the next call.
  std::span<const Swap> end_step(std::span<const std::uint8_t> resident);
  std::span<const Swap> end_prompt(std::span<const std::uint8_t> resident);
  // For prompts in chunks: the swaps after a chunk, by all that has been counted; nothing is forgotten until
  // forget(). chunk() and then forget() are end_prompt().
  std::span<const Swap> chunk(std::span<const std::uint8_t> resident);
  void forget();

  std::uint32_t experts() const { return static_cast<std::uint32_t>(tokens_.size()); }
  void grow(std::uint32_t experts);  // to at least so many; new ones have no tokens yet

 private:
  WindowRules rules_;
  std::uint32_t steps_ = 0;     // steps of the running window
  std::vector<double> tokens_;  // (N): of the running window
  WorkloadSwaps swaps_;
};

}  // namespace sluice::experts
