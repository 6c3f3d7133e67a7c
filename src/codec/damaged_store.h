// What helps where stored exponents are no encoding: every codec's errors end with it.
#pragma once

#include <string_view>

namespace sluice::codec {

inline constexpr std::string_view kDamagedStore =
    "the store is damaged: find out where with `sluice verify`, then copy it again, or pack the model again";

}  // namespace sluice::codec
