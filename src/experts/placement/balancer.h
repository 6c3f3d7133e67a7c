// SMoE's balance between the link and the host: of the experts that are not on the device, those with most
// tokens are loaded, the others are computed on the host, so that the slower of the two ends as early as
// possible. SMoE (arXiv 2508.18983, Alg. 2); SPEC §2.5. O(n log n).
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

namespace sluice::experts {

enum class BalanceRule : std::uint8_t {
  kLookAhead,  // loads the next expert if the link then ends no later than the host with its next one
  kLiteral,    // as printed: loads the next expert if the link ends no later than the host now
};

// All experts are in order of tokens descending, ties by place. Both sides serve theirs in this order.
struct Balance {
  std::span<const std::uint32_t> loads, host;  // places
  double load_time = 0, host_time = 0;
  double makespan() const { return std::max(load_time, host_time); }
};

// kLookAhead is optimal where all loads cost the same and no expert costs the host less than one of fewer
// tokens; nothing else is asked of the host's times. kLiteral loads the first expert even alone, which costs
// up to load_time / host time, and fills the cache. Allocates nothing once it has seen the largest layer.
// Thread-compatible.
class Balancer {
 public:
  // tokens, host_times: (n), by place; load_time: of any one expert. Times are in one unit, finite and at
  // least 0. REQUIRES: host times that do not fall where tokens rise. The result is valid until the next
  // call.
  Balance balance(BalanceRule rule, std::span<const std::uint32_t> tokens, std::span<const double> host_times,
                  double load_time);

 private:
  std::vector<std::uint32_t> order_;
};

}  // namespace sluice::experts
