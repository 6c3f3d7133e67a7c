#include "reproduce/smoe/smoe_settings.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"

namespace sluice::reproduce {
namespace {

std::vector<SmoePlace> make_places() {
  std::vector<SmoePlace> places;
  for (const SmoeSetting& setting : smoe_settings())
    for (const lab::HybridMachine& machine : lab::hybrid_machines()) {
      if (!machine.name.starts_with(setting.machine)) continue;
      for (const double share : machine.slot_shares) {
        SmoePlace place{.label = machine.name,
                        .setting = &setting,
                        .machine = &machine,
                        .slots = static_cast<std::uint32_t>(share * setting.experts)};
        if (machine.slot_shares.size() > 1) place.label += fmt::format(", {} slots", place.slots);
        places.push_back(std::move(place));
      }
    }
  return places;
}

}  // namespace

const std::vector<SmoeSetting>& smoe_settings() {
  static const std::vector<SmoeSetting> all = {{.name = "S1",
                                                .model = "deepseek-moe-16b",
                                                .layers = 27,
                                                .experts = 64,
                                                .top_k = 6,
                                                .alpha = .35,
                                                .machine = "smoe-s1",
                                                .has_llamacpp = true},
                                               {.name = "S2",
                                                .model = "XVERSE-MoE-A4.2B",
                                                .layers = 28,
                                                .experts = 64,
                                                .top_k = 6,
                                                .alpha = .30,
                                                .machine = "smoe-s2"},
                                               {.name = "S3",
                                                .model = "Qwen2-57B-A14B",
                                                .layers = 28,
                                                .experts = 64,
                                                .top_k = 8,
                                                .alpha = .25,
                                                .machine = "smoe-s3",
                                                .has_llamacpp = true}};
  return all;
}

const std::vector<SmoePlace>& smoe_places() {
  static const std::vector<SmoePlace> places = make_places();
  return places;
}

const SmoePlace& smoe_place(const std::string& label) {
  const auto found = std::ranges::find(smoe_places(), label, &SmoePlace::label);
  SLUICE_CHECK(found != smoe_places().end(), "no place " + label);
  return *found;
}

}  // namespace sluice::reproduce
