#include "experts/core/tier.h"

#include "experts/core/value_names.h"

namespace sluice::experts {
namespace {

constexpr std::string_view kTiersNames[] = {"inclusive", "exclusive"};  // by value

}  // namespace

Tiers parse_tiers(std::string_view name) { return value_named<Tiers>(Setting::kTiers, kTiersNames, name); }
std::string_view tiers_name(Tiers tiers) { return kTiersNames[static_cast<std::size_t>(tiers)]; }

}  // namespace sluice::experts
