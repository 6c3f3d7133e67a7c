// Seconds as a report shows them.
#pragma once

#include <string>

namespace sluice {

// Three digits in the unit that fits: "2.50 s", "12.3 ms", "480 µs", "0.70 µs", "1250 s"; "0 s" for nothing,
// and
// "-1.20 ms" below it. What is less than half of a picosecond is nothing.
std::string format_duration(double seconds);

}  // namespace sluice
