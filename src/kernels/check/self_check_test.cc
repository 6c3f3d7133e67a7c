#include "kernels/check/self_check.h"

#include <chrono>

#include "kernels/attention/attention_impl.h"
#include "kernels/elementwise/elementwise_impl.h"
#include "kernels/kernel_table.h"
#include "kernels/products/format_kernels.h"
#include "kernels/products/packed/tile_impl.h"
#include "kernels/test_data.h"

namespace sluice::kernels {
namespace {

TEST(SelfCheck, KeepsEveryAvailableInstructionSet) {
  for (const Isa isa : available_isas()) {
    std::string warning;
    const auto start = std::chrono::steady_clock::now();
    EXPECT_EQ(self_check(isa, &warning), isa);
    const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - start;
    std::cout << isa_name(isa) << " checked in " << took.count() << " ms\n";
    EXPECT_EQ(warning, "");
  }
}

TEST(SelfCheck, StepsDownFromWhatTheCpuLacks) {
  std::string warning;
  const Isa found = self_check(Isa::kNeon, &warning);
  EXPECT_LE(found, best_isa());
  EXPECT_NO_THROW(self_check(Isa::kAvx512, nullptr));
}

// A test that compares an instruction set with scalar proves nothing if both run the same code.
TEST(KernelTable, EachInstructionSetHasItsOwnKernels) {
#if defined(__x86_64__)
  const FormatRow &words = format_row({}, &codec::kFormatBf16),
                  &planes = format_row({}, &codec::kFormatPacked);
  EXPECT_EQ(words.of(Isa::kAvx512Vbmi2).rows, words.of(Isa::kAvx512).rows);
  EXPECT_NE(planes.of(Isa::kAvx512Vbmi2).few, planes.of(Isa::kAvx512).few);
  EXPECT_NE(kernel_table(Isa::kAvx512Bf16).pairs->multiply, kernel_table(Isa::kScalar).pairs->multiply);
  EXPECT_NE(kernel_table(Isa::kAmx).tiles->multiply, kernel_table(Isa::kScalar).tiles->multiply);
  const Isa sets[] = {Isa::kScalar, Isa::kAvx2, Isa::kAvx512};
  for (const Isa a : sets) {
    for (const Isa b : sets) {
      if (a == b) continue;
      EXPECT_NE(words.of(a).rows, words.of(b).rows);
      EXPECT_NE(words.of(a).transposed, words.of(b).transposed);
      EXPECT_NE(arrange_kernel(a), arrange_kernel(b));
      EXPECT_NE(kernel_table(a).attention->item, kernel_table(b).attention->item);
      EXPECT_NE(kernel_table(a).elementwise->silu_mul, kernel_table(b).elementwise->silu_mul);
    }
  }
#elif defined(__aarch64__)
  const KernelTable &neon = kernel_table(Isa::kNeon), &scalar = kernel_table(Isa::kScalar);
  EXPECT_NE(neon.attention->item, scalar.attention->item);
  EXPECT_NE(neon.elementwise->silu_mul, scalar.elementwise->silu_mul);
  for (const FormatRow& row : format_rows()) {
    EXPECT_NE(row.of(Isa::kNeon).rows, row.of(Isa::kScalar).rows) << row.format->name;
    if (row.of(Isa::kScalar).transposed != nullptr)
      EXPECT_NE(row.of(Isa::kNeon).transposed, row.of(Isa::kScalar).transposed) << row.format->name;
    if (row.of(Isa::kScalar).coded_rows != nullptr && row.format->input != codec::InputForm::kBlocks)
      EXPECT_NE(row.of(Isa::kNeon).coded_rows, row.of(Isa::kScalar).coded_rows) << row.format->name;
  }
#endif
}

}  // namespace
}  // namespace sluice::kernels
