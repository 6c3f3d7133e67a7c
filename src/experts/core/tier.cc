#include "experts/core/tier.h"

#include "experts/core/value_names.h"

namespace sluice::experts {
namespace {

constexpr std::string_view kTiersNames[] = {"inclusive", "exclusive"};  // by value
constexpr std::string_view kAdmitNames[] = {"loaded", "idle"};          // by value

}  // namespace

Tiers parse_tiers(std::string_view name) { return value_named<Tiers>(Setting::kTiers, kTiersNames, name); }
std::string_view tiers_name(Tiers tiers) { return kTiersNames[static_cast<std::size_t>(tiers)]; }

Admit parse_admit(std::string_view name) { return value_named<Admit>(Setting::kAdmit, kAdmitNames, name); }
std::string_view admit_name(Admit admit) { return kAdmitNames[static_cast<std::size_t>(admit)]; }

}  // namespace sluice::experts
