// Scales of quantised groups as they are stored, and the weights that have none.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/error.h"
#include "base/float16.h"

namespace sluice::codec {

// Binary16 to nearest, ties to even, within [2^-24, 65504] (SPEC 4.2). REQUIRES: scale >= 0.
inline std::uint16_t scale_word(double scale) {
  return std::clamp<std::uint16_t>(double_to_fp16(scale), 0x0001, 0x7bff);
}
inline constexpr std::uint16_t kScaleOne = 0x3c00;

// Of a group that holds such a weight; the caller adds where it stands, and what else helps there.
inline Error not_finite(double weight) {
  return Error(ErrorKind::kInvalid, "a weight has no value and cannot be quantised")
      .expected("finite numbers")
      .found(weight != weight ? "NaN"
             : weight < 0     ? "-infinity"
                              : "infinity")
      .fix("download the file again; a model that really has such weights cannot be quantised");
}

}  // namespace sluice::codec
