#include "kernels/check/self_check.h"

#include <chrono>

#include "kernels/attention/attention_impl.h"
#include "kernels/elementwise/elementwise_impl.h"
#include "kernels/kernel_table.h"
#include "kernels/products/codes/int8_matmul_impl.h"
#include "kernels/products/codes/integer_impl.h"
#include "kernels/products/codes/sliced_matmul_impl.h"
#include "kernels/products/packed/packed_impl.h"
#include "kernels/products/packed/tile_impl.h"
#include "kernels/products/words/matmul_impl.h"
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
  EXPECT_EQ(kernel_table(Isa::kAvx512Vbmi2).matmul->bf16.rows, kernel_table(Isa::kAvx512).matmul->bf16.rows);
  EXPECT_NE(kernel_table(Isa::kAvx512Vbmi2).packed->few, kernel_table(Isa::kAvx512).packed->few);
  EXPECT_NE(kernel_table(Isa::kAvx512Bf16).pairs->multiply, kernel_table(Isa::kScalar).pairs->multiply);
  EXPECT_NE(kernel_table(Isa::kAmx).tiles->multiply, kernel_table(Isa::kScalar).tiles->multiply);
  const KernelTable* tables[] = {&kernel_table(Isa::kScalar), &kernel_table(Isa::kAvx2),
                                 &kernel_table(Isa::kAvx512)};
  for (const KernelTable* a : tables) {
    for (const KernelTable* b : tables) {
      if (a == b) continue;
      EXPECT_NE(a->matmul->bf16.rows, b->matmul->bf16.rows);
      EXPECT_NE(a->matmul->bf16.transposed, b->matmul->bf16.transposed);
      EXPECT_NE(a->attention->item, b->attention->item);
      EXPECT_NE(a->elementwise->silu_mul, b->elementwise->silu_mul);
    }
  }
#elif defined(__aarch64__)
  const KernelTable &neon = kernel_table(Isa::kNeon), &scalar = kernel_table(Isa::kScalar);
  EXPECT_NE(neon.matmul->bf16.rows, scalar.matmul->bf16.rows);
  EXPECT_NE(neon.matmul->bf16.transposed, scalar.matmul->bf16.transposed);
  EXPECT_NE(neon.attention->item, scalar.attention->item);
  EXPECT_NE(neon.elementwise->silu_mul, scalar.elementwise->silu_mul);
  EXPECT_NE(neon.sliced->of_bits[0], scalar.sliced->of_bits[0]);
  EXPECT_NE(neon.int8->rows, scalar.int8->rows);
  EXPECT_NE(neon.integer->dense, scalar.integer->dense);
#endif
}

}  // namespace
}  // namespace sluice::kernels
