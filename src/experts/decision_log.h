// Cache decisions as text, one line an event: what the engine decided in a run and what a replay of its trace
// decides must be the same file (SPEC I6).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "experts/cache_policies.h"
#include "experts/miss_constraint.h"
#include "experts/pools.h"
#include "experts/precision.h"
#include "experts/residency.h"
#include "experts/zip_pools.h"

namespace sluice::experts {

// Of a model in slices: what its decisions follow from, beside routing.
struct SliceSetting {
  PrecisionRule precision = {};
  SlicesConfig cache = {};
  ConstraintConfig limits = {};
};

// What was asked of the caches; the first line of a log.
struct DecisionSetting {
  std::string cache;
  std::string scope;   // "global" "layer"
  Bytes capacity = 0;  // of each cache
  Parts keep = Part::kFull;
  std::uint64_t seed = 0;
  std::optional<PoolSlots> pools = {};  // of zip-pools: a layer's slots; and its rules
  PoolRules rules = {};
  std::optional<SliceSetting> slices = {};  // of slice-lru
};
std::string decision_heading(const DecisionSetting& setting);

// Appends "EVENT LAYER hit ID,ID miss ID=PARTS,ID=- out LAYER/ID=PARTS\n": ids of the layer; what a miss
// leaves resident
// (- nothing: used and dropped); what left, in order of decision. Where an event changes what was resident of
// a used expert, "ID=BEFORE>AFTER". Of slices, ":high" or ":low" follows, the view it is computed with. Empty
// lists are left out.
void append_decision(std::string& log, std::uint64_t event, std::uint32_t layer, const EventOutcome& outcome);

// "3,4,0,1": experts in F, C, S, E.
std::string slots_text(const PoolSlots& slots);

// The last line: a hash of all decisions of all caches.
std::string decision_ending(std::uint64_t hash);

// One number for the decisions of a run: of its only cache, or of its caches by layer.
std::uint64_t decision_hash(std::span<const std::unique_ptr<Residency>> caches);

// "full" "sm" "exp" "sm+exp" …; "-" for none.
std::string_view parts_name(Parts parts);

}  // namespace sluice::experts
