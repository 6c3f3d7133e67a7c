#include "experts/routing/smoe_rules.h"

#include <cmath>
#include <string>

#include "base/error.h"
#include "base/setting.h"
#include "experts/core/value_names.h"

namespace sluice::experts {
namespace {

// By value.
constexpr std::string_view kRenorms[] = {"model", "mass", "none"};
constexpr std::string_view kResidents[] = {"device", "memory"};

}  // namespace

SmoeRenorm smoe_renorm(std::string_view name) {
  return value_named<SmoeRenorm>(Setting::kRenorm, kRenorms, name);
}

SmoeResident smoe_resident(std::string_view name) {
  return value_named<SmoeResident>(Setting::kResident, kResidents, name);
}
std::string_view smoe_resident_name(SmoeResident resident) {
  return kResidents[static_cast<std::size_t>(resident)];
}

void SmoeRules::validate() const {
  if (std::isfinite(alpha) && alpha >= 0) return;
  throw Error(ErrorKind::kUsage, "value out of range")
      .in(Setting::kAlpha)
      .expected("a number of at least 0, such as 0.25")
      .found(std::to_string(alpha));
}

}  // namespace sluice::experts
