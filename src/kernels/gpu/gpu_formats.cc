#include "kernels/gpu/gpu_formats.h"

#include <algorithm>
#include <array>

namespace sluice::kernels {

bool gpu_multiplies(const codec::MatrixFormat& format) {
  static constexpr std::array kFormats = {
      &codec::kFormatBf16,   &codec::kFormatF16,   &codec::kFormatF32,
      &codec::kFormatPacked, &codec::kFormatQ80,   &codec::kFormatQ4K,
      &codec::kFormatQ6K,    &codec::kFormatMxfp4, &codec::kFormatMxfp4Pair};
  return std::ranges::find(kFormats, &format) != kFormats.end();
}

bool gpu_multiplies_transposed(const codec::MatrixFormat& format) { return format.words.has_value(); }

}  // namespace sluice::kernels
