// What splitting BF16 words into planes takes, and merging them.
#pragma once

#include <cstdint>

#include "base/bytes.h"
#include "codec/matrix_format.h"

namespace sluice::store {

// The most memory while words of so many places are split or merged: they, their signs and mantissas, their
// exponents, and these coded, which are never longer.
inline Bytes split_memory(std::uint64_t places) {
  const codec::MatrixShape row{1, places};
  return codec::kFormatBf16.bytes(row) + 3 * codec::kFormatSplit.plane_bytes(row, 0);
}

}  // namespace sluice::store
