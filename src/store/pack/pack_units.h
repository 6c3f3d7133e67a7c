// The work of a pack in its order: units, each a dense piece or a whole expert.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "store/pack/pack.h"
#include "store/source/weight_files.h"

namespace sluice::store {

struct UnitPiece {
  std::uint32_t tensor = 0;            // index into Weights::tensors
  std::uint64_t first = 0, count = 0;  // elements
};

struct PackUnit {
  bool is_expert = false;
  bool is_range = false;               // one of PackPlan::ranges: stored unchanged
  std::uint32_t layer = 0, index = 0;  // for an expert
  std::vector<UnitPiece> pieces{};     // one piece if dense
  // Position of its first byte when all weight files are placed one after another.
  Bytes position = 0;
};

// The experts and ranges of the plan, and every range of a tensor outside them, in the order of the source
// (so that it is read nearly from front to back). Error(kInvalid), naming `path`, if a piece does not exist,
// two pieces overlap, an expert is listed twice, or a range is empty.
std::vector<PackUnit> make_units(const Weights& weights, const PackPlan& plan, const std::string& path);

// Where each weight file starts when they are placed one after another.
std::vector<Bytes> file_positions(const Weights& weights);

// XXH3 of all fields of the units: equal for equal plans of equal sources.
std::uint64_t fingerprint(const Weights& weights, const std::vector<PackUnit>& units,
                          const std::string& architecture);

}  // namespace sluice::store
