#include "kernels/kernel_table.h"

namespace sluice::kernels {

const KernelTable& kernel_table(Isa isa) {
  static const KernelTable scalar = {kMatmulScalar, kAttentionScalar, kElementwiseScalar,
                                     kSlicedScalar, kInt8Scalar,      {},
                                     kTilesScalar,  kPairsScalar};
#if defined(__x86_64__)
  static const KernelTable avx2 = {kMatmulAvx2, kAttentionAvx2, kElementwiseAvx2, kSlicedAvx2, kInt8Avx2,
                                   {},          kTilesScalar,   kPairsScalar};
  static const KernelTable avx512 = {kMatmulAvx512, kAttentionAvx512, kElementwiseAvx512, kSlicedAvx512,
                                     kInt8Avx512,   kPackedAvx512,    kTilesScalar,       kPairsScalar};
  static const KernelTable vbmi2 = {kMatmulAvx512, kAttentionAvx512,   kElementwiseAvx512, kSlicedAvx512,
                                    kInt8Avx512,   kPackedAvx512Vbmi2, kTilesScalar,       kPairsScalar};
  static const KernelTable bf16 = {kMatmulAvx512, kAttentionAvx512,   kElementwiseAvx512, kSlicedAvx512,
                                   kInt8Avx512,   kPackedAvx512Vbmi2, kTilesScalar,       kPairsAvx512Bf16};
  static const KernelTable amx = {kMatmulAvx512, kAttentionAvx512,   kElementwiseAvx512, kSlicedAvx512,
                                  kInt8Avx512,   kPackedAvx512Vbmi2, kTilesAmx,          kPairsScalar};
  if (isa == Isa::kAmx) return amx;
  if (isa == Isa::kAvx512Bf16) return bf16;
  if (isa == Isa::kAvx512Vbmi2) return vbmi2;
  if (isa == Isa::kAvx512) return avx512;
  if (isa == Isa::kAvx2) return avx2;
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
