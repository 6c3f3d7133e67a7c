// What a cache begins with that begins with anything: experts drawn by a seed.
#pragma once

#include <cstdint>
#include <vector>

#include "experts/cache/cache_policies.h"

namespace sluice::experts {

// As many experts of each layer as its equal share of the capacity holds; ascending. None without layers.
std::vector<Placed> drawn_start(const CacheConfig& config, const ExpertSizes& sizes, Bytes capacity);

}  // namespace sluice::experts
