#include "experts/tier_choice.h"

namespace sluice::experts {
namespace {

bool holds_all(const HostMemory& host) {
  if (!host.cache.keeps) return false;
  Bytes all = 0;
  for (std::uint32_t layer = 0; layer < host.layers; ++layer) {
    if (host.by_layer) all = 0;
    for (std::uint32_t e = 0; e < host.experts; ++e)
      all +=
          host.sizes.bytes({static_cast<std::uint16_t>(layer), static_cast<std::uint16_t>(e)}).of(host.keep);
    if (all > host.capacity) return false;
  }
  return true;
}

}  // namespace

TierChoice usual_tiers(const HostMemory& host) {
  if (holds_all(host)) return {Tiers::kInclusive, "the host's memory holds all experts"};
  if (host.keep.has(Part::kMsb))
    return {Tiers::kInclusive, "experts in slices do not come back from a device"};
  if (!host.cache.adopts)
    return {Tiers::kInclusive, "the host's cache takes nothing back that leaves a device"};
  if (host.would_repack)
    return {Tiers::kInclusive,
            "the host keeps experts packed, and what the device decoded is not packed again"};
  return {Tiers::kExclusive, "the host's memory does not hold all experts, so none is kept twice"};
}

}  // namespace sluice::experts
