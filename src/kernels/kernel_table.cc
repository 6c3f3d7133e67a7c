#include "kernels/kernel_table.h"

namespace sluice::kernels {

const KernelTable& kernel_table(Isa isa) {
  static const KernelTable scalar = {kMatmulScalar, kAttentionScalar, kElementwiseScalar};
#if defined(__x86_64__)
  static const KernelTable avx2 = {kMatmulAvx2, kAttentionAvx2, kElementwiseAvx2};
  static const KernelTable avx512 = {kMatmulAvx512, kAttentionAvx512, kElementwiseAvx512};
  if (isa == Isa::kAvx512 || isa == Isa::kAvx512Vbmi2) return avx512;
  if (isa == Isa::kAvx2) return avx2;
#endif
  (void)isa;
  return scalar;
}

}  // namespace sluice::kernels
