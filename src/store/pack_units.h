// What a pack has to do, in the order in which it does it: units, each a dense piece or a whole expert.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "store/pack.h"
#include "store/weight_files.h"

namespace sluice::store {

struct UnitPiece {
  std::uint32_t tensor = 0;            // index into Weights::tensors
  std::uint64_t first = 0, count = 0;  // elements
};

struct PackUnit {
  bool is_expert = false;
  bool is_range = false;               // of PackPlan::ranges: stored as it is
  std::uint32_t layer = 0, index = 0;  // of an expert
  std::vector<UnitPiece> pieces{};     // one if dense
  Bytes position = 0;                  // of its first byte when all weight files stand in one row
};

// The experts and ranges of the plan, and every range of a tensor that none of them has, in the order of the
// source (so that it is read nearly from front to back). Error(kInvalid), naming `path`, if a piece does not
// exist, two overlap, or an expert is listed twice; an empty range.
std::vector<PackUnit> make_units(const Weights& weights, const PackPlan& plan, const std::string& path);

// Where each weight file starts in that row.
std::vector<Bytes> file_positions(const Weights& weights);

// XXH3 of all that the units say: equal for equal plans of equal sources.
std::uint64_t fingerprint(const Weights& weights, const std::vector<PackUnit>& units,
                          const std::string& architecture);

}  // namespace sluice::store
