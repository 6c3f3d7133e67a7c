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
};
std::string decision_heading(const DecisionSetting& setting);

// Appends "EVENT LAYER hit ID,ID miss ID=PARTS,ID=- out LAYER/ID=PARTS
// ". Ids are those of the layer. PARTS is what a miss leaves resident ("-": nothing; the expert was used and
// dropped), or what left, in order of decision. Where an event changes the resident parts of a used expert,
// "ID=BEFORE>AFTER". For slices ":high" or ":low" follows: the view that the expert is computed with. "update
// LAYER/ID=PARTS" are experts outside the event that came in. Empty lists are left out.
void append_decision(std::string& log, std::uint64_t event, std::uint32_t layer, const EventOutcome& outcome);

// "3,4,0,1": experts in F, C, S, E.
std::string slots_text(const PoolSlots& slots);

// The last line: a hash of all decisions of all caches.
std::string decision_ending(std::uint64_t hash);

// One number for the decisions of a run: the hash of its only cache, or of its caches by layer.
std::uint64_t decision_hash(std::span<const std::unique_ptr<Residency>> caches);

// "full" "sm" "exp" "sm+exp" …; "-" for no parts.
std::string_view parts_name(Parts parts);

}  // namespace sluice::experts
