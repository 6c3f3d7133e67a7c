#include "kernels/kernel_table.h"

#include <algorithm>
#include <string_view>

namespace sluice::kernels {

namespace {

#if defined(__x86_64__)
bool has(std::string_view feature) {
  const CpuInfo cpu = cpu_info();
  return std::ranges::find(cpu.features, feature) != cpu.features.end();
}

// VNNI is not on the ladder of instruction sets: CPUs with AVX-512 may have it or not.
const IntegerKernels* integer_avx512() { return has("avx512vnni") ? &kIntegerAvx512Vnni : &kIntegerAvx512; }
const IntegerKernels* integer_amx() {
  return has("avx512vnni") && has("amx_int8") ? &kIntegerAmxInt8 : integer_avx512();
}
#endif

}  // namespace

const KernelTable& kernel_table(Isa isa) {
  static const KernelTable scalar = {&kMatmulScalar, &kAttentionScalar, &kElementwiseScalar,
                                     &kSlicedScalar, &kInt8Scalar,      &kPackedNone,
                                     &kTilesScalar,  &kPairsScalar,     &kIntegerScalar};
#if defined(__x86_64__)
  static const KernelTable avx2 = {&kMatmulAvx2, &kAttentionAvx2, &kElementwiseAvx2, &kSlicedAvx2, &kInt8Avx2,
                                   &kPackedNone, &kTilesScalar,   &kPairsScalar,     &kIntegerAvx2};
  static const KernelTable avx512 = {&kMatmulAvx512, &kAttentionAvx512, &kElementwiseAvx512,
                                     &kSlicedAvx512, &kInt8Avx512,      &kPackedAvx512,
                                     &kTilesScalar,  &kPairsScalar,     integer_avx512()};
  static const KernelTable vbmi2 = {&kMatmulAvx512, &kAttentionAvx512, &kElementwiseAvx512,
                                    &kSlicedAvx512, &kInt8Avx512,      &kPackedAvx512Vbmi2,
                                    &kTilesScalar,  &kPairsScalar,     integer_avx512()};
  static const KernelTable bf16 = {&kMatmulAvx512, &kAttentionAvx512, &kElementwiseAvx512,
                                   &kSlicedAvx512, &kInt8Avx512,      &kPackedAvx512Vbmi2,
                                   &kTilesScalar,  &kPairsAvx512Bf16, integer_avx512()};
  static const KernelTable amx = {&kMatmulAvx512, &kAttentionAvx512, &kElementwiseAvx512,
                                  &kSlicedAvx512, &kInt8Avx512,      &kPackedAvx512Vbmi2,
                                  &kTilesAmx,     &kPairsScalar,     integer_amx()};
  if (isa == Isa::kAmx) return amx;
  if (isa == Isa::kAvx512Bf16) return bf16;
  if (isa == Isa::kAvx512Vbmi2) return vbmi2;
  if (isa == Isa::kAvx512) return avx512;
  if (isa == Isa::kAvx2) return avx2;
#elif defined(__aarch64__)
  static const KernelTable neon = {&kMatmulNeon, &kAttentionNeon, &kElementwiseNeon, &kSlicedNeon, &kInt8Neon,
                                   &kPackedNone, &kTilesScalar,   &kPairsScalar,     &kIntegerNeon};
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
