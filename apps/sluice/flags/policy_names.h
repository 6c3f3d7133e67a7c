// The names of policies as flags take them: which there are for a run, and which a command may be given.
#pragma once

#include <string>

#include "base/setting.h"
#include "engine/plan/options.h"
#include "experts/device_caches.h"
#include "experts/registry.h"

namespace sluice::app {

struct EngineFlags;  // flags/engine_flags.h

// Whether a running model can do what a policy does. Others must be told what replays alone know. A cache of
// the host is not told what is popular, and begins empty.
inline bool runs(const experts::CachePolicy& cache) {
  return !cache.oracle && experts::why_for_a_device(cache).empty();
}
inline bool runs(const experts::PrefetchPolicy& prefetch) {
  return prefetch.needs != experts::PrefetchNeeds::kTransitions;
}

// The names of those policies of a table that `has` says true of.
template <class Policies, class Has>
std::string names_of(const Policies& policies, Has has) {
  std::string names;
  for (const auto& policy : policies)
    if (has(policy)) names += (names.empty() ? "" : ", ") + std::string(policy.name);
  return names;
}

template <class Policies>
std::string names_of(const Policies& policies) {
  return names_of(policies, [](const auto& policy) {
    if constexpr (requires { runs(policy); })
      return runs(policy);
    else
      return true;
  });
}

// A device holds whole experts, in one form.
std::string device_cache_names();

// Who asks for a cache: a running model, or a replay, which can count beforehand what a cache must know.
enum class CacheUser { kModel, kReplay };
// Error(kUsage) that names `setting` for an unknown cache, and for one that must know what its user does not.
const experts::CachePolicy& find_cache_for(CacheUser user, const std::string& name, Setting setting);
// Error(kUsage) for an unknown router, and for one that plays a trace where none is given (`plays`).
const experts::RouterPolicy& find_router_for(bool plays, const std::string& name);
// Finds the policies that flags name, before anything is opened. Error(kUsage).
void name_policies(const EngineFlags& flags, engine::EngineOptions& options);

}  // namespace sluice::app
