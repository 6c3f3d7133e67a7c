// Whether an expert that a device keeps stays in the host's memory, too, where nobody has said it. SPEC §10
// (G12); docs/hybrid.md. One decision for runs and for replays, so that both have the same tiers.
#pragma once

#include <cstdint>
#include <string_view>

#include "experts/cache/cache.h"
#include "experts/core/ids.h"
#include "experts/core/tier.h"
#include "experts/registry.h"

namespace sluice::experts {

// The host beside the device. Non-owning.
struct HostMemory {
  const CachePolicy& cache;
  const ExpertSizes& sizes;
  Parts keep = Part::kFull;               // what it keeps of an expert that stays
  std::uint32_t layers = 0, experts = 0;  // sparse layers, experts of each
  bool by_layer = false;                  // a cache for each layer; else one for all
  Bytes capacity = kAnyBytes;             // each cache's, in the unit of the sizes
  bool would_repack = false;              // it keeps experts packed, and the device has them decoded
};

struct TierChoice {
  Tiers tiers = Tiers::kInclusive;
  std::string_view why = "as asked";  // as a report continues "exclusive: "
};

// Exclusive where the host cannot hold all experts and its cache can take back what leaves the device; else
// inclusive.
TierChoice usual_tiers(const HostMemory& host);

}  // namespace sluice::experts
