#include "device/host_pace.h"

namespace sluice::device {

void HostPace::run(std::span<const WeightUse> weights, FunctionRef<void()> work) {
  if (weights.empty()) return work();
  double bytes = 0;
  for (const WeightUse& use : weights) bytes += static_cast<double>(use.bytes) * use.tokens;
  const Clock::Time now = pacer_.clock().now();
  const bool follows = now - pacer_.end() < Pacer::kLeastWait;
  pacer_.run(follows ? pacer_.end() : now, bytes / bytes_per_s_, work);
}

}  // namespace sluice::device
