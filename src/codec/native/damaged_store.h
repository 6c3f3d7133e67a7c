// The remedy for stored exponents that are not a valid encoding; the errors of every codec end with it.
#pragma once

#include <string_view>

namespace sluice::codec {

inline constexpr std::string_view kDamagedStore =
    "the store is damaged: find out where with `sluice verify`, then copy it again, or pack the model again";

}  // namespace sluice::codec
