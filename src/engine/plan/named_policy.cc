#include "engine/plan/named_policy.h"

#include "base/error.h"
#include "experts/device_presets.h"
#include "experts/registry.h"

namespace sluice::engine {

template <>
const experts::RouterPolicy* Named<experts::RouterPolicy>::find(std::string_view name) {
  return name.empty() ? nullptr : &experts::find_router(name);
}
template <>
const experts::CachePolicy* Named<experts::CachePolicy>::find(std::string_view name) {
  return name.empty() ? nullptr : &experts::find_cache(name);
}
template <>
const experts::SchedulerPolicy* Named<experts::SchedulerPolicy>::find(std::string_view name) {
  return name.empty() ? nullptr : &experts::find_scheduler(name);
}
template <>
const experts::PrefetchPolicy* Named<experts::PrefetchPolicy>::find(std::string_view name) {
  return name.empty() ? nullptr : &experts::find_prefetch(name);
}
template <>
const experts::PlacementPolicy* Named<experts::PlacementPolicy>::find(std::string_view name) {
  return name.empty() ? nullptr : &experts::find_placement(name);
}

template <class Policy>
const Policy& Named<Policy>::or_usual(std::string_view usual) const {
  if (row_ != nullptr) return *row_;
  SLUICE_CHECK(!usual.empty());
  return *find(usual);
}

template class Named<experts::RouterPolicy>;
template class Named<experts::CachePolicy>;
template class Named<experts::SchedulerPolicy>;
template class Named<experts::PrefetchPolicy>;
template class Named<experts::PlacementPolicy>;

NamedPreset::NamedPreset(std::string_view name) {
  if (name.empty()) return;
  device_ = experts::device_preset_named(name);
  if (device_ == nullptr) host_ = &experts::host_preset(name);
}

bool NamedPreset::is_chosen() const { return device_ != nullptr || !host().usual; }

const experts::Preset& NamedPreset::host() const {
  return host_ != nullptr ? *host_ : experts::usual_preset();
}

std::string_view NamedPreset::name() const { return device_ != nullptr ? device_->name : host_->name; }

}  // namespace sluice::engine
