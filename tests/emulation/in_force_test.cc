// Linked into every program with emulated kernels.
#include <gtest/gtest.h>

#include <algorithm>

#include "base/cpu.h"

namespace sluice {
namespace {

TEST(Emulation, IsInForce) {
  const std::vector<Isa> isas = available_isas();
  if (std::ranges::count(isas, Isa::kAvx2) == 0)
    GTEST_SKIP() << "EMULATED KERNELS ARE NOT TESTED HERE: the CPU lacks AVX2, FMA, F16C or BMI2";
  for (const Isa isa : {Isa::kAvx512, Isa::kAvx512Vbmi2, Isa::kAvx512Bf16, Isa::kAmx})
    EXPECT_EQ(std::ranges::count(isas, isa), 1) << isa_name(isa);
}

}  // namespace
}  // namespace sluice
