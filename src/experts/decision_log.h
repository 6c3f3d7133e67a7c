// Cache decisions as text, one line per event. The file that the engine writes in a run must equal the file
// that a replay of the run's trace writes (SPEC I6).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "experts/cache/cache_policies.h"
#include "experts/cache/residency.h"
#include "experts/cache/zip_pools.h"
#include "experts/core/pools.h"
#include "experts/layer_decider.h"
#include "experts/routing/miss_constraint.h"
#include "experts/routing/precision.h"

namespace sluice::experts {

// For a model in slices: the settings that decide, besides routing.
struct SliceSetting {
  PrecisionRule precision = {};
  SlicesConfig cache = {};
  ConstraintConfig limits = {};
};

// The settings of the caches; the first line of a log.
struct DecisionSetting {
  std::string cache;
  std::string scope;   // "global" "layer"
  Bytes capacity = 0;  // bytes of each cache
  Parts keep = Part::kFull;
  std::uint64_t seed = 0;
  // For zip-pools: the slots of a layer, and the rules of the pools.
  std::optional<PoolSlots> pools = {};
  PoolRules rules = {};
  std::optional<SliceSetting> slices = {};  // for slice-lru
  std::string routing = {};                 // what is played ("recorded from FILE"); empty: nothing
  struct Device {
    std::string cache, placement;
    std::string scope;                    // scope of its caches
    Bytes capacity = 0;                   // slots of each of them (device_caches.h)
    std::optional<std::uint32_t> slots;   // PlacementCosts::slots
    std::uint32_t buffers = kAnyBuffers;  // HybridWork::buffers
    std::string prefill = {};  // placement of prompts of `prefill_from` tokens or more; empty: as all
    std::uint32_t prefill_from = 1;
    std::uint64_t profile = 0;        // hash of the costs that placement and the modelled clock see
    std::string prefetch = {};        // to the device; empty: none
    std::uint32_t prefetch_size = 0;  // DevicePolicies::prefetch_size …
    bool guarded = false;             // … and guards_prefetch
    Tiers tiers = Tiers::kInclusive;
    Parts slices = {};  // that a slot has room for; empty: experts are whole
  };
  std::optional<Device> device = {};
};
std::string decision_heading(const DecisionSetting& setting);
// The device's part, as its policies are; empty without one.
std::optional<DecisionSetting::Device> device_setting(const LayerPolicies& policies);

// Appends "EVENT LAYER hit ID,ID miss ID=PARTS,ID=- out LAYER/ID=PARTS
// ". Ids are those of the layer. PARTS is what a miss leaves resident ("-": nothing; the expert was used and
// dropped), or what left, in order of decision. Where an event changes the resident parts of a used expert,
// "ID=BEFORE>AFTER". For slices ":high" or ":low" follows: the view that the expert is computed with. "update
// LAYER/ID=PARTS" are experts outside the event that came in. Where tiers exclude each other, "give LAYER/ID=
// PARTS" left for a device, and "adopt LAYER/ID=PARTS" came in from there. Empty lists are left out.
void append_decision(std::string& log, std::uint64_t event, std::uint32_t layer, const EventOutcome& outcome);

// A whole decision: the line above and, where there is a device, behind it and before its end:
// " device ID,ID" are the experts that it computes, in that order: "ID" from a slot, "ID*" from a prefetch,
// "ID+" from the host into a slot, "ID-" from the host through a buffer; for slices the view follows, as
// above. "drop LAYER/ID" leave its cache, and "bring LAYER/ID" come in as updates.
void append_decision(std::string& log, std::uint64_t event, std::uint32_t layer,
                     const LayerDecision& decision);
// "start LAYER/ID,…": what the device's cache begins with; nothing if it begins empty.
void append_start(std::string& log, std::span<const DeviceUpdate> start);

// The costs as one number, for Device::profile.
std::uint64_t hash_of(const ExpertCosts& costs);

// "3,4,0,1": experts in F, C, S, E.
std::string slots_text(const PoolSlots& slots);

// The last line: a hash of all decisions of all caches.
std::string decision_ending(std::uint64_t hash);

// One number for the decisions of a run: the hash of its only cache, or of its caches by layer.
std::uint64_t decision_hash(std::span<const std::unique_ptr<Residency>> caches);
// The same of all tiers.
std::uint64_t decision_hash(const LayerPolicies& policies);

// "full" "sm" "exp" "sm+exp" …; "-" for no parts.
std::string_view parts_name(Parts parts);

}  // namespace sluice::experts
