// Finds the word that a user most likely meant.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace sluice::app {

// The candidate with the fewest typing slips from `word` (a letter added, left out, changed, or two
// neighbours swapped); empty if even that candidate is too far away.
std::string nearest(std::string_view word, std::span<const std::string> candidates);

}  // namespace sluice::app
