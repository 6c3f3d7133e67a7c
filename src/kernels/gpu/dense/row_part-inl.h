// How warps share the numbers of some rows.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/gpu/warp.h"

namespace sluice::kernels::gpu {

// Neighbours in a row, for one warp.
inline constexpr std::uint32_t kPartNumbers = 128;

constexpr std::uint64_t row_parts(std::uint64_t columns) {
  return (columns + kPartNumbers - 1) / kPartNumbers;
}

// The part of a warp: rows ascend, and parts within them.
struct RowPart {
  std::uint64_t row, begin;  // begin: the first column
  std::uint32_t count;       // at most kPartNumbers

  static SLUICE_GPU RowPart of(std::uint64_t warp, std::uint64_t columns) {
    const std::uint64_t parts = (columns + kPartNumbers - 1) / kPartNumbers;
    RowPart part{warp / parts, warp % parts * kPartNumbers, kPartNumbers};
    if (columns - part.begin < kPartNumbers) part.count = static_cast<std::uint32_t>(columns - part.begin);
    return part;
  }
};

// Calls f(at, mask) for 32 numbers after the other: lane by lane, where they are, counted from the part's
// begin, and whether they are in it.
template <class Warp, class F>
SLUICE_GPU void each_number(const Warp& warp, const RowPart& part, const F& f) {
  using Word = typename Warp::Word;
  SLUICE_GPU_UNROLL
  for (std::uint32_t i = 0; i < kPartNumbers; i += 32) {
    const Word at = Word(i) + warp.lane();
    f(at, at < Word(part.count));
  }
}

}  // namespace sluice::kernels::gpu
