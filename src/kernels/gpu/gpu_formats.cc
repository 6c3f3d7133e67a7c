#include "kernels/gpu/gpu_formats.h"

#include <algorithm>
#include <array>

namespace sluice::kernels {

std::span<const codec::MatrixFormat* const> gpu_formats() {
  static constexpr std::array kFormats = {
      &codec::kFormatBf16,   &codec::kFormatF16,   &codec::kFormatF32,
      &codec::kFormatPacked, &codec::kFormatQ80,   &codec::kFormatQ4K,
      &codec::kFormatQ6K,    &codec::kFormatMxfp4, &codec::kFormatMxfp4Pair};
  return kFormats;
}

bool gpu_multiplies(const codec::MatrixFormat& format) {
  return std::ranges::find(gpu_formats(), &format) != gpu_formats().end();
}

bool gpu_multiplies_transposed(const codec::MatrixFormat& format) { return format.words.has_value(); }

}  // namespace sluice::kernels
