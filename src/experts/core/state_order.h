// The order in which counts by state are kept and reported.
#pragma once

#include <cstddef>
#include <string_view>

#include "experts/core/ids.h"

namespace sluice::experts {

inline constexpr std::string_view kStateOrder = "FCSEM";

constexpr std::size_t place_of(State state) { return kStateOrder.find(static_cast<char>(state)); }

}  // namespace sluice::experts
