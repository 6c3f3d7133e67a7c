// Linked into every program with emulated kernels.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "base/machine/cpu.h"

namespace sluice {
namespace {

TEST(Emulation, IsInForce) {
  const std::vector<Isa> isas = available_isas();
  if (std::ranges::count(isas, Isa::kAvx2) == 0)
    GTEST_SKIP() << "EMULATED KERNELS ARE NOT TESTED HERE: the CPU lacks AVX2, FMA, F16C or BMI2";
  for (const Isa isa : {Isa::kAvx512, Isa::kAvx512Vbmi2, Isa::kAvx512Bf16, Isa::kAmx})
    EXPECT_EQ(std::ranges::count(isas, isa), 1) << isa_name(isa);
  // The features by which these kernels are chosen.
  const std::vector<std::string> features = cpu_info().features;
  for (const char* const feature : {"avx512vnni", "amx_tile", "amx_int8"})
    EXPECT_EQ(std::ranges::count(features, feature), 1) << feature;
}

}  // namespace
}  // namespace sluice
