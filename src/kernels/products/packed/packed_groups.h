// Finds the groups of a packed matrix in its chunks.
#pragma once

#include <algorithm>
#include <optional>
#include <string>

#include "base/error.h"
#include "kernels/products/packed/packed_impl.h"
#include "kernels/products/packed/packed_matmul.h"
#include "kernels/products/scratch.h"

namespace sluice::kernels {

// The groups of a matrix, one after the other.
class PackedGroups {
 public:
  explicit PackedGroups(const PackedWeight& w) : w_(w) {}

  // `ahead`: how many groups further on memory is asked for while this group is computed with.
  PackedGroup at(std::uint64_t group, std::byte* scratch, std::size_t ahead = 1) {
    while (chunk_ == nullptr || group >= chunk_->first_group + chunk_->groups) next_chunk(group);
    const std::uint64_t at = group - chunk_->first_group, places = w_.shape.group_places();
    PackedGroup found{};
    found.sign_mantissas = w_.sign_mantissas + group * places;
    found.blocks = w_.shape.blocks();
    found.scratch = scratch;
    found.ahead = ahead;
    if (!coded_) {
      found.exponents = chunk_->bytes.data() + at * places;
      return found;
    }
    found.coded = true;
    found.group = coded_->group(at);
    if (at + ahead < chunk_->groups) {
      const codec::NativeGroup next = coded_->group(at + ahead);
      found.next_lists = next.tier2;
      found.next_lists_bytes = static_cast<std::size_t>(next.literals + next.literal_count - next.tier2);
    }
    return found;
  }

 private:
  void next_chunk(std::uint64_t group) {
    const auto found = std::ranges::find_if(
        w_.chunks, [&](const PackedChunk& chunk) { return group < chunk.first_group + chunk.groups; });
    SLUICE_CHECK(found != w_.chunks.end() && group >= found->first_group, std::to_string(group));
    chunk_ = &*found;
    coded_.reset();
    if (chunk_->coded) {
      coded_.emplace(chunk_->bytes, codec::GroupRange{chunk_->groups, w_.shape.blocks()});
    } else {
      SLUICE_CHECK(chunk_->bytes.size() == chunk_->groups * w_.shape.group_places());
    }
  }

  const PackedWeight& w_;
  const PackedChunk* chunk_ = nullptr;
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

[[noreturn]] inline void throw_damaged() {
  throw Error(ErrorKind::kCorrupt, "exponents of packed weights in memory are no valid encoding by native")
      .fix("check the store with `sluice verify`, and the machine's memory");
}

// Working memory for a group that is decoded; kOtherGroup for the second of two groups that are decoded in
// turn.
inline std::byte* packed_scratch(const Context& ctx, const codec::TileShape& shape,
                                 Room room = Room::kGroup) {
  return scratch_room(ctx, room, codec::native_scratch_bytes(shape.blocks()));
}

}  // namespace sluice::kernels
