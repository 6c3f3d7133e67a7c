#include "flags/device_cache_flags.h"

#include <algorithm>
#include <set>

#include "base/error.h"
#include "base/setting.h"
#include "experts/registry.h"
#include "flags/command_line.h"
#include "flags/number_range.h"

namespace sluice::app {
namespace {

std::string joined(const auto& names) {
  std::string text;
  for (const auto& name : names) text += (text.empty() ? "" : ", ") + std::string(name);
  return text;
}

std::string caches_that(bool experts::CachePolicy::*property) {
  std::set<std::string_view> names;
  for (const experts::CachePolicy& policy : experts::cache_policies())
    if (policy.*property) names.insert(policy.name);
  return joined(names);
}

}  // namespace

experts::WorkloadSetting DeviceCacheFlags::setting() const {
  experts::WorkloadSetting setting;
  if (w_size) setting.steps = static_cast<std::uint32_t>(*w_size);
  if (u_size) setting.swaps = static_cast<std::uint32_t>(*u_size);
  if (!admit.empty()) setting.admit = experts::parse_admit(admit);
  return setting;
}

void add_device_cache_flags(Command& command, const std::string& group, DeviceCacheFlags& flags) {
  command
      .add_option(
          Setting::kWSize, &flags.w_size,
          "Steps of the window of the device's cache; default: 4 of workload-window, 16 of score-window")
      ->check(whole_number(Setting::kWSize, 1, 1 << 20))
      ->group(group);
  command
      .add_option(Setting::kUSize, &flags.u_size,
                  "Experts that the device's cache exchanges at a time; default: 8 of workload-window, 2 of "
                  "workload-ema")
      ->check(whole_number(Setting::kUSize, 0, 1 << 16))
      ->group(group);
  command
      .add_option(Setting::kAdmit, &flags.admit,
                  "The cache score-window takes in what was loaded for the device: loaded; or while the link "
                  "is idle also the best of what the host computed: idle; default: the preset's, else idle")
      ->group(group);
}

void check_device_cache_flags(const DeviceCacheFlags& flags,
                              std::span<const experts::CachePolicy* const> caches) {
  const struct {
    Setting setting;
    bool given;
    bool experts::CachePolicy::*acts;
  } all[] = {{Setting::kWSize, flags.w_size.has_value(), &experts::CachePolicy::windowed},
             {Setting::kUSize, flags.u_size.has_value(), &experts::CachePolicy::swaps},
             {Setting::kAdmit, !flags.admit.empty(), &experts::CachePolicy::learns_idle}};
  for (const auto& [setting, given, acts] : all) {
    if (!given || std::ranges::any_of(caches, [&](const auto* cache) { return cache->*acts; })) continue;
    std::set<std::string_view> found;
    for (const experts::CachePolicy* const cache : caches) found.insert(cache->name);
    throw Error(ErrorKind::kUsage, "this flag has no effect here")
        .in(setting)
        .expected(Setting::kDeviceCache + " with one of " + caches_that(acts))
        .found(joined(found))
        .fix("give what the flag needs, or leave " + setting + " out");
  }
}

}  // namespace sluice::app
