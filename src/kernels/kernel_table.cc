#include "kernels/kernel_table.h"

namespace sluice::kernels {

const KernelTable& kernel_table(Isa isa) {
  static const KernelTable scalar = {&kAttentionScalar, &kElementwiseScalar, &kTilesScalar, &kPairsScalar};
#if defined(__x86_64__)
  static const KernelTable avx2 = {&kAttentionAvx2, &kElementwiseAvx2, &kTilesScalar, &kPairsScalar};
  static const KernelTable avx512 = {&kAttentionAvx512, &kElementwiseAvx512, &kTilesScalar, &kPairsScalar};
  static const KernelTable bf16 = {&kAttentionAvx512, &kElementwiseAvx512, &kTilesScalar, &kPairsAvx512Bf16};
  static const KernelTable amx = {&kAttentionAvx512, &kElementwiseAvx512, &kTilesAmx, &kPairsScalar};
  if (isa == Isa::kAmx) return amx;
  if (isa == Isa::kAvx512Bf16) return bf16;
  if (isa == Isa::kAvx512 || isa == Isa::kAvx512Vbmi2) return avx512;
  if (isa == Isa::kAvx2) return avx2;
#elif defined(__aarch64__)
  static const KernelTable neon = {&kAttentionNeon, &kElementwiseNeon, &kTilesScalar, &kPairsScalar};
  if (isa == Isa::kNeon) return neon;
#endif
  (void)isa;
  return scalar;
}

Products rounded_products(Isa isa) {
  if (isa == Isa::kAmx) return Products::kTiles;
  if (isa == Isa::kAvx512Bf16) return Products::kPairs;
  return Products::kExact;
}

}  // namespace sluice::kernels
