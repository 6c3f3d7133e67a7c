// Where experts are kept, and where they are computed.
#pragma once

#include <cstdint>

namespace sluice::experts {

// A memory that holds experts. Residency decides about each tier by itself.
enum class Tier : std::uint8_t { kHost, kDevice };

// What computes.
enum class Unit : std::uint8_t { kHost, kDevice };

}  // namespace sluice::experts
