// The word a user most likely meant.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace sluice::app {

// The candidate that is fewest typing slips from `word` (a letter added, left out, changed, or two neighbours
// swapped); empty if even that one is too far to be meant.
std::string nearest(std::string_view word, std::span<const std::string> candidates);

}  // namespace sluice::app
