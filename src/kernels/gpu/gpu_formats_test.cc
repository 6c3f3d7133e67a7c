#include "kernels/gpu/gpu_formats.h"

#include <gtest/gtest.h>

#include <set>
#include <string_view>

namespace sluice::kernels {
namespace {

TEST(GpuFormats, AreWordsPackedPlanesAndFourKindsOfBlocks) {
  std::set<std::string_view> multiplied;
  for (const codec::MatrixFormat* const format : codec::matrix_formats())
    if (gpu_multiplies(*format)) multiplied.insert(format->name);
  EXPECT_EQ(multiplied, (std::set<std::string_view>{"f32", "f16", "bf16", "packed", "q8_0", "q4_k", "q6_k",
                                                    "mxfp4", "mxfp4_pair"}));
}

TEST(GpuFormats, NoKernelReadsAFormatThatACheckpointBrings) {
  static constexpr codec::MatrixFormat kOwn = {.name = "bf16"};
  EXPECT_FALSE(gpu_multiplies(kOwn));
}

}  // namespace
}  // namespace sluice::kernels
