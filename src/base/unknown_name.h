// The text about a name that is not among those a user may give.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace sluice {

// The candidate with the fewest typing slips from `word` (a letter added, left out, changed, or two
// neighbours swapped); empty if even that candidate is too far away.
std::string nearest(std::string_view word, std::span<const std::string> candidates);

// "a", "a LAST b", "a, b LAST c".
std::string listed(std::span<const std::string> names, std::string_view last);

// Error(kUsage) that lists the names which `where`, a setting or an argument, takes here, and asks whether
// the nearest of them was meant. If none is near, it says `otherwise`.
Error unknown_name(std::string_view where, std::string_view name, const std::vector<std::string>& known,
                   std::string_view message = "unknown name",
                   std::string_view otherwise = "give one of these");

// The `name`s of a table's rows, for which `takes` is true.
template <class Rows, class Takes>
std::vector<std::string> names_in(const Rows& rows, Takes takes) {
  std::vector<std::string> names;
  for (const auto& row : rows)
    if (takes(row)) names.emplace_back(row.name);
  return names;
}
template <class Rows>
std::vector<std::string> names_in(const Rows& rows) {
  return names_in(rows, [](const auto&) { return true; });
}

}  // namespace sluice
