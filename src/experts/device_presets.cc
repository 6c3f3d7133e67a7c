#include "experts/device_presets.h"

#include <algorithm>
#include <iterator>
#include <string>

#include "base/error.h"
#include "base/setting.h"
#include "base/unknown_name.h"
#include "experts/prefetch/prefetch.h"

namespace sluice::experts {
namespace {

constexpr std::string_view kDali = "DALI; SPEC 3, 6.3";
constexpr std::string_view kBaseline = "SPEC 3.7";
constexpr std::string_view kSmoeLadder = "SMoE (arXiv 2508.18983) figure 16; SPEC 2.7, 10 G16";
constexpr std::string_view kNoPartialState =
    "it predicts the next layer by what resident experts compute, which no prefetch does yet; s-er is SMoE "
    "without that";

constexpr DevicePreset kPresets[] = {
    {.name = "dali",
     .device_cache = "workload-window",
     .placement = "greedy",
     .prefetch = "dali-residual",
     .source = kDali},
    {.name = "dali-plus",
     .device_cache = "workload-ema",
     .placement = "ratio-prefix",
     .prefetch = "dali-residual",
     .guards_prefetch = true,
     .packed_slots = true,
     .source = "ours, after DALI"},
    {.name = "d-naive", .device_cache = "none", .placement = "cpu", .source = kDali},
    {.name = "d-greedy", .device_cache = "none", .placement = "greedy", .source = kDali},
    {.name = "d-greedy+pre",
     .device_cache = "none",
     .placement = "greedy",
     .prefetch = "dali-residual",
     .source = kDali},
    {.name = "cpu-moe",
     .device_cache = "none",
     .placement = "cpu",
     .source = "llama.cpp and KTransformers with all experts on the host"},
    {.name = "ncmoe",
     .device_cache = "static-layers",
     .placement = "layer-split",
     .prefill_placement = "device",
     .prefill_from = 32,
     .source = "llama.cpp with the experts of its first layers on the host; SPEC 10 G11"},
    {.name = "gpu-lru", .device_cache = "lru", .placement = "device", .source = kBaseline},
    {.name = "d-llamacpp", .device_cache = "static-layers", .placement = "layer-split", .source = kBaseline},
    {.name = "d-ktransformers",
     .device_cache = "static-layers",
     .placement = "layer-split",
     .source = kBaseline},
    {.name = "d-fiddler", .device_cache = "static-popular", .placement = "fiddler", .source = kBaseline},
    {.name = "hybrimoe",
     .device_cache = "hybrimoe",
     .placement = "two-pointer",
     .prefetch = "raw",
     .prefill_placement = "device",
     .source = "HybriMoE (arXiv 2504.05897); SPEC 10 G10"},
    {.name = "d-hybrimoe",
     .device_cache = "d-hybrimoe",
     .placement = "threshold",
     .prefetch = "raw",
     .source = kBaseline},
    {.name = "d-moe-lightning",
     .device_cache = "static-popular",
     .placement = "cpu",
     .source = kBaseline,
     .missing = "it divides each layer by a fixed share, which no placement does"},
    {.name = "edgemoe",
     .device_cache = "lfu",
     .placement = "device",
     .prefetch = "stat",
     .source = "EdgeMoE; SPEC 3.4, 10"},
    {.name = "s-base", .device_cache = "static-random", .placement = "device", .source = kSmoeLadder},
    {.name = "s-ce", .device_cache = "score-window", .placement = "device", .source = kSmoeLadder},
    {.name = "s-er",
     .device_cache = "score-window",
     .placement = "device",
     .router = "smoe",
     .source = kSmoeLadder},
    {.name = "s-pre",
     .device_cache = "score-window",
     .placement = "device",
     .router = "smoe",
     .source = kSmoeLadder,
     .missing = kNoPartialState},
    {.name = "smoe",
     .device_cache = "score-window",
     .placement = "device",
     .router = "smoe",
     .source = "SMoE (arXiv 2508.18983); SPEC 5.2",
     .missing = kNoPartialState},
    {.name = "s-llamacpp", .device_cache = "static-layers", .placement = "layer-split", .source = "SPEC 2.7"},
    {.name = "s-moe-infinity",
     .device_cache = "eam",
     .placement = "device",
     .prefetch = "eam",
     .prefetch_size = kAnyRequests,
     .source = "MoE-Infinity (arXiv 2401.14361); SPEC 2.7"},
    {.name = "s-deepspeed",
     .device_cache = "none",
     .placement = "device",
     .prefetch = "all-next",
     .prefetch_size = kAnyRequests,
     .source = "SPEC 2.7"},
};

}  // namespace

std::uint32_t usual_prefetch_size(std::uint32_t experts) { return experts <= 8 ? 1 : 4; }

std::uint32_t usual_prefetch_size(const DevicePreset* preset, std::uint32_t experts) {
  return preset != nullptr && preset->prefetch_size != 0 ? preset->prefetch_size
                                                         : usual_prefetch_size(experts);
}

bool guards_prefetch(const DevicePreset* preset) { return preset == nullptr || preset->guards_prefetch; }

PrefillPlacement prefill_placement(const DevicePreset* preset, const PlacementPolicy* placement,
                                   const PlacementPolicy* in_prompts) {
  if (in_prompts != nullptr) return {in_prompts};
  if (preset == nullptr || preset->prefill_placement.empty() || placement != nullptr) return {};
  return {&find_placement(preset->prefill_placement), preset->prefill_from};
}

std::span<const DevicePreset> device_presets() { return kPresets; }

const DevicePreset* device_preset_named(std::string_view name) {
  const auto* const found = std::ranges::find(kPresets, name, &DevicePreset::name);
  return found != std::end(kPresets) ? found : nullptr;
}

void check_runs(const DevicePreset& preset) {
  if (preset.missing.empty()) return;
  throw Error(ErrorKind::kUsage, "this preset cannot run: " + std::string(preset.missing))
      .in(Setting::kPreset)
      .expected("a preset that `sluice run " + Setting::kHelp + "` lists")
      .found(std::string(preset.name))
      .fix("name another");
}

namespace {

bool runs(const DevicePreset& preset) { return preset.missing.empty(); }

}  // namespace

bool is_device_preset(std::string_view name) { return device_preset_named(name) != nullptr; }

const Preset& host_preset(std::string_view name) {
  if (is_device_preset(name)) return usual_preset();
  const auto found = std::ranges::find(presets(), name, &Preset::name);
  if (found != presets().end()) return *found;
  std::vector<std::string> known = names_in(presets());
  for (std::string& preset : names_in(kPresets, runs)) known.push_back(std::move(preset));
  throw unknown_name(Setting::kPreset, name, known);
}

const DevicePreset& find_device_preset(std::string_view name) {
  if (const DevicePreset* const found = device_preset_named(name); found != nullptr) {
    check_runs(*found);
    return *found;
  }
  throw unknown_name(Setting::kPreset, name, names_in(kPresets, runs));
}

}  // namespace sluice::experts
