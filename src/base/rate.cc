#include "base/rate.h"

#include <fmt/format.h>

#include <iterator>

namespace sluice {

std::string format_rate(double bytes_per_s) {
  struct Unit {
    double bytes;
    const char* name;
  };
  constexpr Unit kUnits[] = {{1e9, "GB/s"}, {1e6, "MB/s"}, {1e3, "kB/s"}, {1, "B/s"}};
  const Unit* unit = kUnits;
  // 999.6 of a unit rounds to one of the next. Above 999 GB/s all digits are shown.
  while (bytes_per_s < .9995 * unit->bytes && unit + 1 != std::end(kUnits)) ++unit;
  const double value = bytes_per_s / unit->bytes;
  return value < 999.5 ? fmt::format("{:.3g} {}", value, unit->name)
                       : fmt::format("{:.0f} {}", value, unit->name);
}

}  // namespace sluice
