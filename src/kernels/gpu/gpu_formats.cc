#include "kernels/gpu/gpu_formats.h"

#include <algorithm>
#include <array>

namespace sluice::kernels {
namespace {

constexpr std::array kFormatsOfGpus = {&codec::kFormatF32,    &codec::kFormatF16,   &codec::kFormatBf16,
                                       &codec::kFormatPacked, &codec::kFormatQ80,   &codec::kFormatQ4K,
                                       &codec::kFormatQ6K,    &codec::kFormatMxfp4, &codec::kFormatMxfp4Pair};

}  // namespace

bool gpu_multiplies(const codec::MatrixFormat& format) {
  return std::ranges::find(kFormatsOfGpus, &format) != kFormatsOfGpus.end();
}

}  // namespace sluice::kernels
