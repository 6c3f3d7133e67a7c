#include "experts/cache/slice_rules.h"

#include <cmath>
#include <string>

#include "base/error.h"

namespace sluice::experts {

void SliceLruRules::validate() const {
  if (lsb_reserve >= 0 && lsb_reserve <= 1) return;
  throw Error(ErrorKind::kUsage, "the reserve for LSB slices is not a share of the cache")
      .in("lsb_reserve")
      .expected("0 to 1")
      .found(std::to_string(lsb_reserve));
}

void WarmupRules::validate() const {
  const auto refuse = [](const char* what, double found) {
    throw Error(ErrorKind::kUsage, "the share of LSB slices is out of range")
        .in(what)
        .expected("a number >= 0")
        .found(std::to_string(found));
  };
  if (!(kappa >= 0) || !std::isfinite(kappa)) refuse("kappa", kappa);
  if (!(rho >= 0) || !std::isfinite(rho)) refuse("rho", rho);
}

}  // namespace sluice::experts
