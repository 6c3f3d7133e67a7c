// Divides a range of bytes among blocks: first fit, and free neighbours become one. Numbers only, no memory.
#pragma once

#include <map>
#include <optional>

#include "base/bytes.h"

namespace sluice::device {

// Takes the lowest free range that is large enough. A block costs its size rounded up to kAlignment, and
// starts on a multiple of it.
//
// Fragmentation: a block may be refused though the free bytes would do, if no free range is that large.
// Blocks of one size never meet this. With sizes from m to n bytes (whole alignments) first fit may need, in
// the worst case, about log2(n / m) times the bytes that are ever taken at once (J. M. Robson, JACM 21(3),
// 1974); so allocate what lives long first, and equal sizes for what comes and goes.
//
// Thread-compatible.
class FirstFit {
 public:
  // Cache lines, and what CUDA allocations are aligned to.
  static constexpr Bytes kAlignment = 256;

  explicit FirstFit(Bytes size);  // rounded down to whole alignments

  static constexpr Bytes cost(Bytes bytes) { return round_up(bytes, kAlignment); }
  // Offset of a block; none if no free range is large enough. REQUIRES: bytes > 0
  std::optional<Bytes> take(Bytes bytes);
  void give(Bytes offset, Bytes bytes);  // a block as it was taken
  Bytes free_bytes() const { return free_bytes_; }
  Bytes largest_free() const;

 private:
  std::map<Bytes, Bytes> free_;  // offset, size: ascending, no two touch
  Bytes free_bytes_;
};

}  // namespace sluice::device
