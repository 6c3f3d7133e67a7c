#include "store/pack_slices.h"

#include <algorithm>

#include "codec/shards.h"
#include "store/format.h"

namespace sluice::store {
namespace {

constexpr Bytes kRawSliceBytes = 4 * kMiB;

}  // namespace

Encoding encoding_of(const Weights& weights, const PackUnit& unit, const UnitPiece& piece, Family family) {
  const bool bf16 = weights.tensors[piece.tensor].dtype == DType::kBF16;
  const bool worth = unit.is_expert  ? piece.count > 0
                     : unit.is_range ? false
                                     : 2 * piece.count >= kMinSplitDenseBytes;
  return family == Family::kSplit && bf16 && worth ? Encoding::kSplit : Encoding::kRaw;
}

PackSlices::PackSlices(const Weights& weights, const std::vector<PackUnit>& units, Family family,
                       unsigned chunks, std::size_t first_unit)
    : weights_(weights), units_(units), family_(family), chunks_(chunks), next_unit_(first_unit) {}

bool PackSlices::next(SliceRange& slice) {
  if (queue_.empty()) {
    if (next_unit_ == units_.size()) return false;
    list(next_unit_++);
  }
  slice = queue_.front();
  queue_.pop_front();
  return true;
}

void PackSlices::list(std::size_t index) {
  const PackUnit& unit = units_[index];
  for (std::size_t p = 0; p < unit.pieces.size(); ++p) {
    const UnitPiece& piece = unit.pieces[p];
    const TensorPlace& place = weights_.places[piece.tensor];
    const Bytes width = dtype_bytes(weights_.tensors[piece.tensor].dtype);
    const Encoding encoding = encoding_of(weights_, unit, piece, family_);
    const auto add = [&](std::uint64_t first, std::uint64_t count) {
      if (count == 0) return;
      queue_.push_back({.unit = index,
                        .piece = p,
                        .first = first,
                        .count = count,
                        .encoding = encoding,
                        .file = place.file,
                        .offset = place.offset + (piece.first + first) * width,
                        .length = count * width});
    };
    if (encoding == Encoding::kSplit && unit.is_expert) {
      for (unsigned chunk = 0; chunk < chunks_; ++chunk) {
        const codec::ElementRange range = codec::shard_range(piece.count, chunks_, chunk);
        add(range.begin, range.size());
      }
    } else {
      const std::uint64_t step = encoding == Encoding::kSplit ? kDenseChunkElements : kRawSliceBytes / width;
      for (std::uint64_t first = 0; first < piece.count; first += step)
        add(first, std::min(step, piece.count - first));
    }
  }
  if (queue_.empty()) queue_.push_back({.unit = index});  // nothing but pieces without elements
  queue_.back().last = true;
}

}  // namespace sluice::store
