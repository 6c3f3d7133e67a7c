// Stored scales of quantised groups, and the error for weights that no scale can represent.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/error.h"
#include "base/float16.h"

namespace sluice::codec {

// Binary16, rounded to nearest, ties to even, within [2^-24, 65504] (SPEC 4.2). REQUIRES: scale >= 0.
inline std::uint16_t scale_word(double scale) {
  return std::clamp<std::uint16_t>(double_to_fp16(scale), 0x0001, 0x7bff);
}
inline constexpr std::uint16_t kScaleOne = 0x3c00;

// The error for a weight that is infinite or NaN; the caller adds its place, and other remedies.
inline Error not_finite(double weight) {
  return Error(ErrorKind::kInvalid, "a weight has no value and cannot be quantised")
      .expected("finite numbers")
      .found(weight != weight ? "NaN"
             : weight < 0     ? "-infinity"
                              : "infinity")
      .fix("download the file again; a model that really has such weights cannot be quantised");
}

}  // namespace sluice::codec
