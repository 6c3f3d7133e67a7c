// The work of a pack in its order: units, each a dense piece or a whole expert.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "codec/matrix_format.h"
#include "store/pack/pack.h"
#include "store/source/source_weights.h"

namespace sluice::store {

struct TensorRange {
  std::uint32_t tensor = 0;            // index into Weights::tensors
  std::uint64_t first = 0, count = 0;  // elements
  bool operator==(const TensorRange&) const = default;
};

// What a piece is, and where it comes from. If it is a matrix in a format, the range counts numbers, its
// tensor is that of the first plane, and both only name it: its bytes are those of its planes.
struct UnitPiece : TensorRange {
  const codec::MatrixFormat* format = nullptr;
  codec::MatrixShape shape{};
  std::array<TensorRange, codec::kMostPlanes> planes{};

  // What is read of the source.
  std::span<const TensorRange> ranges() const {
    if (format == nullptr) return {static_cast<const TensorRange*>(this), 1};
    return std::span(planes).first(format->plane_count());
  }
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
// (so that it is read nearly from front to back). Pieces name tensors as readers have them. Error(kInvalid),
// naming `path`, if a piece does not exist, two pieces overlap, an expert is listed twice, a range is empty,
// or a piece of a matrix in blocks is not whole rows.
std::vector<PackUnit> make_units(const SourceWeights& source, const PackPlan& plan, const std::string& path);

// Where each weight file starts when they are placed one after another.
std::vector<Bytes> file_positions(const Weights& weights);

// XXH3 of all fields of the units: equal for equal plans of equal sources.
std::uint64_t fingerprint(const Weights& weights, const std::vector<PackUnit>& units,
                          const std::string& architecture);

}  // namespace sluice::store
