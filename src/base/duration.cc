#include "base/duration.h"

#include <fmt/format.h>

#include <cmath>
#include <iterator>

namespace sluice {

std::string format_duration(double seconds) {
  struct Unit {
    double per_second;
    const char* name;
  };
  constexpr Unit kUnits[] = {{1, "s"}, {1e3, "ms"}, {1e6, "µs"}};
  if (!std::isfinite(seconds)) return fmt::format("{} s", seconds);
  const double size = std::abs(seconds);
  if (size < 5e-13) return "0 s";
  const Unit* unit = kUnits;
  // 0.9996 of a unit rounds to all of it.
  while (size * unit->per_second < 0.9995 && unit + 1 != std::end(kUnits)) ++unit;
  const double value = size * unit->per_second;
  const int digits = value < 9.995 ? 2 : value < 99.95 ? 1 : 0;
  return fmt::format("{}{:.{}f} {}", seconds < 0 ? "-" : "", value, digits, unit->name);
}

}  // namespace sluice
