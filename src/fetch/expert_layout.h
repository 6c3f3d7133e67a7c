// Where the parts of one expert are on disk and in memory: two regions, each read and kept separately.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "experts/core/part_rules.h"
#include "fetch/piece_layout.h"

namespace sluice::fetch {

// A stretch of the expert's bytes. Its runs are block-aligned, of at most kSegmentBytes, ascending, and
// without gaps in memory.
struct ReadRegion {
  std::vector<FileRun> runs;
  // Bytes in memory: the runs' lengths, rounded up to a size that buffers share.
  Bytes bytes = 0;
  Bytes disk_bytes() const;  // bytes that reading it asks of the disk
  // Runs [first, end) that hold bytes [place, place + length) of the region.
  struct Range {
    std::uint32_t first = 0, end = 0;
  };
  Range covering(Bytes place, Bytes length) const;
};

// Immutable once made.
struct ExpertLayout {
  // Pieces stored whole (part `full`), sign+mantissa planes of split pieces (`sm`), or MSB slices (`msb`).
  ReadRegion base;
  // Exponent chunks (part `exp`) or LSB slices (`lsb`); empty if all pieces are stored whole.
  ReadRegion rest;
  std::vector<PiecePlace> pieces;  // their places are in `base`, those of chunks in `rest`
  // Size of the view (part `full`), rounded to a size that buffers share; 0 if there are no words.
  Bytes view_bytes = 0;
  // Which parts the regions hold, and what is made of them. An expert is split if one of its pieces is.
  const experts::PartRules* rules = &experts::part_rules(experts::Family::kRaw);

  bool merged() const { return rules->words == experts::WordSource::kMerged; }
  // Bytes of both regions, and the largest that a view takes of those and of words.
  Bytes read_bytes() const { return base.bytes + rest.bytes; }
  Bytes largest_view() const {
    return rules->words == experts::WordSource::kNowhere ? read_bytes() : view_bytes;
  }
};

inline constexpr Bytes kSegmentBytes = kMiB;

ExpertLayout lay_out_expert(std::span<const store::StoredPiece> pieces);

// `bytes` rounded up to one of few sizes, by at most 1.6 % (and to whole blocks), so that experts that
// compress slightly differently can reuse one another's buffers.
Bytes shared_size(Bytes bytes);

}  // namespace sluice::fetch
