#include "reproduce/zipmoe/zipmoe_systems.h"

#include <algorithm>
#include <initializer_list>

#include "experts/presets.h"

namespace sluice::reproduce {
namespace {

// Those of these names that this program knows.
std::vector<std::string> known(std::initializer_list<const char*> names) {
  std::vector<std::string> list;
  for (const char* name : names)
    if (std::ranges::any_of(experts::presets(),
                            [&](const experts::Preset& preset) { return preset.name == name; }))
      list.emplace_back(name);
  return list;
}

}  // namespace

std::vector<std::string> published_baselines() {
  return known({"z-accelerate", "z-deepspeed", "z-moe-infinity"});
}

std::vector<std::string> sweep_systems() {
  std::vector<std::string> systems = published_baselines();
  for (const std::string& name : known({"z-basic-lru", "z-C", kPlanned})) systems.push_back(name);
  return systems;
}

std::vector<std::string> ladder_steps() {
  return known({"z-accelerate", "z-basic-fifo", "z-basic-marking", "z-basic-lru", "z-C", kPlanned});
}

std::vector<std::string> batch_systems() {
  std::vector<std::string> systems = published_baselines();
  systems.emplace_back(kPlanned);
  return systems;
}

std::vector<std::string> length_systems() { return known({"z-accelerate", "z-basic-lru", kPlanned}); }

}  // namespace sluice::reproduce
