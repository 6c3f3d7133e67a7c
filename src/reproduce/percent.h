// A share of one as the rows of tables show it.
#pragma once

#include <fmt/format.h>

#include <string>

namespace sluice::reproduce {

inline std::string percent(double share) { return fmt::format("{:.1f} %", 100 * share); }

}  // namespace sluice::reproduce
