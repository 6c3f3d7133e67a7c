// Finds the groups of a packed matrix in its chunks.
#pragma once

#include <algorithm>
#include <optional>
#include <span>
#include <string>

#include "base/error.h"
#include "codec/matrix_format.h"
#include "codec/native/native_chunk.h"
#include "codec/native/tiles.h"
#include "device/access.h"
#include "device/space.h"
#include "kernels/products/packed/packed_impl.h"
#include "kernels/products/scratch.h"

namespace sluice::kernels {

// The tiles of a packed matrix.
inline codec::TileShape tiles_of(const codec::MatrixRef& w) { return {w.shape.rows, w.shape.columns}; }

// The groups of a matrix, one after the other.
class PackedGroups {
 public:
  explicit PackedGroups(const codec::MatrixRef& w)
      : tiles_(tiles_of(w)),
        sign_mantissas_(device::host_space().pointer(w.planes[0])),
        exponents_(device::host_space().pointer(w.planes[1])),
        chunks_(w.chunks) {}

  // `ahead`: how many groups further on memory is asked for while this group is computed with.
  PackedGroup at(std::uint64_t group, std::byte* scratch, std::size_t ahead = 1) {
    const std::uint64_t places = tiles_.group_places();
    while (chunk_ == nullptr || group * places >= chunk_->first + chunk_->count) next_chunk(group);
    const std::uint64_t at = group - chunk_->first / places, groups = chunk_->count / places;
    PackedGroup found{};
    found.sign_mantissas = sign_mantissas_ + group * places;
    found.blocks = tiles_.blocks();
    found.scratch = scratch;
    found.ahead = ahead;
    if (!coded_) {
      found.exponents = exponents_ + chunk_->place + at * places;
      return found;
    }
    found.coded = true;
    found.group = coded_->group(at);
    if (at + ahead < groups) {
      const codec::NativeGroup next = coded_->group(at + ahead);
      found.next_lists = next.tier2;
      found.next_lists_bytes = static_cast<std::size_t>(next.literals + next.literal_count - next.tier2);
    }
    return found;
  }

 private:
  void next_chunk(std::uint64_t group) {
    const std::uint64_t places = tiles_.group_places(), place = group * places;
    const auto found = std::ranges::find_if(
        chunks_, [&](const codec::PlaneChunk& chunk) { return place < chunk.first + chunk.count; });
    SLUICE_CHECK(found != chunks_.end() && place >= found->first, std::to_string(group));
    chunk_ = &*found;
    coded_.reset();
    if (chunk_->coded) {
      coded_.emplace(std::span(exponents_ + chunk_->place, chunk_->bytes),
                     codec::GroupRange{chunk_->count / places, tiles_.blocks()});
    } else {
      SLUICE_CHECK(chunk_->bytes == chunk_->count, std::to_string(chunk_->bytes));
    }
  }

  const codec::TileShape tiles_;
  const std::byte *sign_mantissas_, *exponents_;
  const std::span<const codec::PlaneChunk> chunks_;
  const codec::PlaneChunk* chunk_ = nullptr;
  std::optional<codec::NativeChunk> coded_;
};

// Decodes a group to words; `columns` as in codec::NativeKernels. False if the group is damaged.
inline bool merge_group(const codec::NativeKernels& native, const PackedGroup& group, std::size_t rows,
                        std::size_t columns, std::byte* words) {
  if (group.coded)
    return native.merge(group.group, group.scratch, group.sign_mantissas, rows, columns, words,
                        codec::Stores::kCached);
  native.merge_raw(group.exponents, group.sign_mantissas, group.blocks, rows, columns, words,
                   codec::Stores::kCached);
  return true;
}

[[noreturn]] inline void throw_damaged() { throw device::damaged_operands(); }

// Working memory for a group that is decoded; kOtherGroup for the second of two groups that are decoded in
// turn.
inline std::byte* packed_scratch(const Context& ctx, const codec::TileShape& shape,
                                 Room room = Room::kGroup) {
  return scratch_room(ctx, room, codec::native_scratch_bytes(shape.blocks()));
}

}  // namespace sluice::kernels
