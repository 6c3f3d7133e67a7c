// Reads frequencies by rank for several functions of the lab.
#pragma once

#include <vector>

#include "lab/ask/fields.h"

namespace sluice::lab {

struct Ranks {
  std::vector<double> f;
  std::uint32_t k = 0;
};

// The fields `f` (descending, in [0, 1], at most 65536) and `k` (1 to their number, which must be their sum).
Ranks parse_ranks(const JsonObject& line);

}  // namespace sluice::lab
