// Which experts of a layer change places so that those with most work stay: the choice that workload_window.h
// and workload_ema.h share. DALI (Alg. 2), its slips mended; SPEC §3.5.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

namespace sluice::experts {

// `in` becomes resident, and `out` leaves.
struct Swap {
  std::uint32_t in = 0, out = 0;
  bool operator==(const Swap&) const = default;
};

struct SwapRule {
  std::uint32_t most = 1;  // swaps at once
  // A swap is made if score[in] > ratio * score[out]; the first that is not ends them.
  double ratio = 1;
  bool unconditional = false;  // all swaps are made, as the paper prints it
};

// Allocates nothing once it has seen the largest layer. Thread-compatible.
class WorkloadSwaps {
 public:
  // score, resident: (N). The newcomers are those of the highest score (then the lowest id), the leavers
  // those of the lowest (then the highest id). The swaps, in this order, are valid until the next call.
  std::span<const Swap> choose(std::span<const double> score, std::span<const std::uint8_t> resident,
                               const SwapRule& rule);

 private:
  std::vector<std::uint32_t> in_, out_;
  std::vector<Swap> swaps_;
};

}  // namespace sluice::experts
