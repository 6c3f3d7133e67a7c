// Where the parts of one expert lie on disk and in memory: two regions, each read and kept by itself.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "experts/ids.h"
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
  // Pieces stored whole (part `full`), sign+mantissa planes of split ones (`sm`), or MSB slices (`msb`).
  Region base;
  // Exponent chunks (part `exp`) or LSB slices (`lsb`); empty if all is stored whole.
  Region rest;
  std::vector<PiecePlace> pieces;  // places in `base`; those of chunks in `rest`
  Bytes view_bytes = 0;            // size of the view (part `full`), a size that buffers share; of slices 0
  bool split = false;              // a view has to be made of both regions; otherwise `base` is the view …
  bool sliced = false;             // … unless regions are slices: kernels compute out of them as they are
  bool whole() const { return !split && !sliced; }
  // What the regions are as parts.
  experts::Part base_part() const {
    return split ? experts::Part::kSm : sliced ? experts::Part::kMsb : experts::Part::kFull;
  }
  experts::Part rest_part() const { return sliced ? experts::Part::kLsb : experts::Part::kExp; }
};

inline constexpr Bytes kSegmentBytes = kMiB;

// `bits`: of the slices of family `sliced`.
ExpertLayout lay_out_expert(std::span<const store::StoredPiece> pieces, codec::SliceBits bits = {});

// `bytes` rounded up to one of few sizes, at most 1.6 % more (and whole blocks), so that buffers of experts
// that compress a little differently are reused for one another.
Bytes shared_size(Bytes bytes);

}  // namespace sluice::fetch
