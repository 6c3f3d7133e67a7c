// Bytes a second as a report shows them.
#pragma once

#include <string>

namespace sluice {

// At most three digits in the decimal unit that fits: "2 GB/s", "16.4 MB/s", "1 kB/s", "500 B/s".
std::string format_rate(double bytes_per_s);

}  // namespace sluice
