#include "experts/routing/slice_names.h"

#include "base/setting.h"
#include "experts/core/value_names.h"

namespace sluice::experts {
namespace {

constexpr std::string_view kLsbMisses[] = {"fetch", "skip", "fetch_if_budget"};          // by value
constexpr std::string_view kInitialSlices[] = {"pcw", "empty", "last-layer", "random"};  // by value

}  // namespace

LsbMiss lsb_miss_rule(std::string_view name) {
  return value_named<LsbMiss>(Setting::kLsbMiss, kLsbMisses, name);
}
std::string_view lsb_miss_name(LsbMiss rule) { return kLsbMisses[static_cast<std::size_t>(rule)]; }
InitialSlices initial_slices(std::string_view name) {
  return value_named<InitialSlices>(Setting::kWarmup, kInitialSlices, name);
}
std::string_view initial_slices_name(InitialSlices initial) {
  return kInitialSlices[static_cast<std::size_t>(initial)];
}

double usual_rho(PrecisionMode precision) {
  return precision == PrecisionMode::kHigh ? 1 : precision == PrecisionMode::kLow ? 0 : WarmupRules{}.rho;
}

}  // namespace sluice::experts
