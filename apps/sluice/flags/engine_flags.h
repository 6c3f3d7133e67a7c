// Flags shared by every command that computes with a model.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/setting.h"
#include "flags/common_flags.h"
#include "flags/device_cache_flags.h"
#include "flags/slice_flags.h"

namespace sluice::app {

class Command;

// The values that the user typed; engine_options() turns them into EngineOptions once.
struct EngineFlags : CommonFlags {
  std::string model;
  SliceFlags slices;
  std::string math = "auto", kv = "auto", disk = "auto";
  std::string preset, router, cache, cache_scope = "global", keep,
                                     dense = "auto";  // empty: the preset's
  std::string scheduler, prefetch, placement, placement_prefill;
  std::string device = "none", device_memory, device_cache, dense_on;  // empty: as EngineOptions says
  std::string device_keep = "auto", tiers, link, device_math;
  bool allow_timed_bits = false;
  std::optional<std::int64_t> device_slots, prefetch_size;
  DeviceCacheFlags device_cache_rules;
  std::string residual;                    // file; empty: the store's sidecar if it has one
  bool records_ahead = false;              // predictions are recorded, that of the residual, too
  std::string ranks_of;                    // file; empty: nothing says which experts are popular
  std::string routing, routing_layers;     // for the router recorded: the trace, and the layers to play
  std::string capacity;                    // empty: what the budget leaves
  std::string profile;                     // file; empty: the store's sidecar if it has one for this machine
  std::int64_t chunk = 4096, context = 0;  // context 0: the model's maximum
};

// What the seed does in a command without sampling.
inline const std::string kSeedOfCaches = "For what draws (the cache marking, " + Setting::kWarmup +
                                         " random) and of costs measured at the start; default: 0";
// What the router does in a command that gets all tokens at once.
inline const std::string kRouterOfSteps = "all but exact change the result, where " + Setting::kPrefill +
                                          " leaves tokens to single steps: prompts are routed exactly";

// Whether a command has flags for policies, because they act there.
enum class PolicyFlags {
  kAll,   // experts are cached, fetched and computed by them, or planned for
  kNone,  // costs alone are measured
};

// Help for flags that act differently in different commands.
struct EngineHelp {
  std::string preset = "auto, which is zipmoe-plus with prefetch stream for packed stores";  // the default
  std::string seed = "Same seed, same random choices; default: random for sampling, printed";
  std::string router = "all but exact change the text; all but recorded route prompts exactly";
  std::string context =
      "Most tokens of prompt and answer together, less the answer's last (of each by itself, behind an "
      "encoder); an answer ends there; default: the model's maximum";
  std::string json = "Print one JSON object and nothing else";
  PolicyFlags policies = PolicyFlags::kAll;
  bool devices = false;        // has the flags of a device; without policies, the device alone
  bool finds_device = false;   // takes a GPU that is there where nobody names a device
  bool plays_routing = false;  // has the flags of the router recorded, which is for benchmarks
};
void add_engine_flags(Command& command, EngineFlags& flags, const EngineHelp& help = {});

}  // namespace sluice::app
