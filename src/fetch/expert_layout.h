// Where the parts of one expert lie on disk and in memory: two regions, each read and kept by itself.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "fetch/piece_layout.h"

namespace sluice::fetch {

// A stretch of the expert's bytes. Runs are block-aligned, of at most kSegmentBytes, ascending, without gaps
// in memory.
struct Region {
  std::vector<FileRun> runs;
  Bytes bytes = 0;           // in memory: the runs' lengths, rounded up to a size that buffers share
  Bytes disk_bytes() const;  // what reading it asks of the disk
  // Runs [first, end) that hold bytes [place, place + length) of the region.
  struct Range {
    std::uint32_t first = 0, end = 0;
  };
  Range covering(Bytes place, Bytes length) const;
};

// Immutable once made.
struct ExpertLayout {
  Region words;      // pieces stored whole, and the sign+mantissa planes of split ones (part `sm`)
  Region exponents;  // the exponent chunks of split pieces (part `exp`); empty if nothing is split
  std::vector<PiecePlace> pieces;  // places in `words`; those of chunks in `exponents`
  Bytes view_bytes = 0;            // size of the view (part `full`), a size that buffers share
  bool split = false;              // a view has to be made; otherwise `words` is the view
};

inline constexpr Bytes kSegmentBytes = kMiB;

ExpertLayout lay_out_expert(std::span<const store::StoredPiece> pieces);

// `bytes` rounded up to one of few sizes, at most 1.6 % more (and whole blocks), so that buffers of experts
// that compress a little differently are reused for one another.
Bytes shared_size(Bytes bytes);

}  // namespace sluice::fetch
