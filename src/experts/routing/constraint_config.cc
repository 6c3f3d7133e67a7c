#include "experts/routing/constraint_config.h"

#include "base/error.h"
#include "base/setting.h"
#include "experts/core/unit_interval.h"
#include "experts/core/value_names.h"
#include "experts/routing/precision.h"

namespace sluice::experts {
namespace {

constexpr std::string_view kConstraints[] = {"none", "boost", "adaptive", "hard"};  // by value

}  // namespace

ConstraintMode constraint_mode(std::string_view name) {
  return value_named<ConstraintMode>(Setting::kConstraint, kConstraints, name);
}

std::string_view constraint_name(ConstraintMode mode) { return kConstraints[static_cast<std::size_t>(mode)]; }

void ConstraintConfig::validate() const {
  require_in_unit("the limit of the miss rate", limit);
  require_in_unit("lambda", lambda);
  require_in_unit("eta", eta);
  if (low.empty() || !high.has_all(low))
    throw Error(ErrorKind::kUsage, "an expert's low view is no part of its high one")
        .in(Setting::kConstraint)
        .expected("a low view of parts that the high one has")
        .found("others");
}

void set_views(PrecisionMode mode, ConstraintConfig& limits) {
  limits.low = least_parts(mode);
  limits.high = kept_slices(mode, true);
}

}  // namespace sluice::experts
