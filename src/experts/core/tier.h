// Where experts are kept, and where they are computed.
#pragma once

#include <cstdint>
#include <string_view>

namespace sluice::experts {

// A memory that holds experts. Residency decides about each tier by itself.
enum class Tier : std::uint8_t { kHost, kDevice };

// Whether an expert that is kept on a device is kept in the host's memory, too.
enum class Tiers : std::uint8_t {
  kInclusive,  // each tier keeps what its own cache says
  kExclusive,  // one of them keeps it, or none: experts/tier_exchange.h
};
Tiers parse_tiers(std::string_view name);  // "inclusive" "exclusive"; Error(kUsage)
std::string_view tiers_name(Tiers tiers);

// Which experts a device's cache takes in where it goes by scores. SPEC §10 (G5).
enum class Admit : std::uint8_t {
  kLoaded,  // those that the device computes
  kIdle,    // while the link is idle, of those that the host computes the best, too
};
Admit parse_admit(std::string_view name);  // "loaded" "idle"; Error(kUsage)
std::string_view admit_name(Admit admit);

// What computes.
enum class Unit : std::uint8_t { kHost, kDevice };

}  // namespace sluice::experts
