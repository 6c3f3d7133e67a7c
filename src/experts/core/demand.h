// The experts that one layer of one step uses.
#pragma once

#include <cstdint>
#include <span>

#include "experts/core/ids.h"

namespace sluice::experts {

// Ascending. Non-owning.
struct Demand {
  std::span<const ExpertId> experts = {};
  std::span<const std::uint32_t> tokens = {};  // (experts): workload w
};

}  // namespace sluice::experts
