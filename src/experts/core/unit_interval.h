// Configuration values that are shares.
#pragma once

#include <string>
#include <string_view>

#include "base/error.h"

namespace sluice::experts {

// Error(kUsage) naming `what` unless `value` is in 0 to 1 (NaN is not).
inline void require_in_unit(std::string_view what, double value) {
  if (value >= 0 && value <= 1) return;
  throw Error(ErrorKind::kUsage, "value out of range")
      .in(what)
      .expected("0 to 1")
      .found(std::to_string(value));
}

}  // namespace sluice::experts
