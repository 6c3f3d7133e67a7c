#include "kernels/kernel_table.h"

namespace sluice::kernels {

const KernelTable& kernel_table(Isa isa) {
  static const KernelTable scalar = {kMatmulScalar, kAttentionScalar, kElementwiseScalar, {}, kTilesScalar};
#if defined(__x86_64__)
  static const KernelTable avx2 = {kMatmulAvx2, kAttentionAvx2, kElementwiseAvx2, {}, kTilesScalar};
  static const KernelTable avx512 = {kMatmulAvx512, kAttentionAvx512, kElementwiseAvx512, kPackedAvx512,
                                     kTilesScalar};
  static const KernelTable vbmi2 = {kMatmulAvx512, kAttentionAvx512, kElementwiseAvx512, kPackedAvx512Vbmi2,
                                    kTilesScalar};
  static const KernelTable amx = {kMatmulAvx512, kAttentionAvx512, kElementwiseAvx512, kPackedAvx512Vbmi2,
                                  kTilesAmx};
  if (isa == Isa::kAmx) return amx;
  if (isa == Isa::kAvx512Vbmi2) return vbmi2;
  if (isa == Isa::kAvx512) return avx512;
  if (isa == Isa::kAvx2) return avx2;
#endif
  (void)isa;
  return scalar;
}

bool has_tiles(Isa isa) { return isa == Isa::kAmx; }

}  // namespace sluice::kernels
