// The slots of pools as they are typed.
#pragma once

#include <string>

#include "experts/core/pools.h"

namespace sluice::app {

// "3,4,2,1": experts of a layer in full, compressed, as sign+mantissa, as exponents. Error(kUsage).
experts::PoolSlots parse_pool_slots(const std::string& text);

}  // namespace sluice::app
