// What splitting BF16 words into planes takes, and merging them.
#pragma once

#include <cstdint>

#include "base/bytes.h"
#include "codec/matrix_format.h"

namespace sluice::store {

// Words are split and merged this many at a time: as words they are never in memory all at once.
inline constexpr std::uint64_t kSplitStep = std::uint64_t{1} << 20;

// The places of one step, kSplitStep or less, so that whole items of `item` places are in it (at least one).
inline std::uint64_t split_step(std::uint64_t item) {
  return (item < kSplitStep ? kSplitStep / item : 1) * item;
}

// The memory that `places` words take beside their signs and mantissas.
inline Bytes merge_memory(std::uint64_t places) {
  const codec::MatrixShape row{1, places};
  return codec::kFormatBf16.bytes(row) + codec::kFormatSplit.plane_bytes(row, 0);
}

}  // namespace sluice::store
