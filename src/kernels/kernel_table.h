// The implementations of one instruction set. A new one: its x_ISA.cc files, three names here, two lines in
// kernel_table.cc.
#pragma once

#include "base/cpu.h"
#include "kernels/attention_impl.h"
#include "kernels/elementwise_impl.h"
#include "kernels/matmul_impl.h"

namespace sluice::kernels {

struct KernelTable {
  MatmulKernels matmul;
  AttentionKernels attention;
  ElementwiseKernels elementwise;
};

extern const MatmulKernels kMatmulScalar, kMatmulAvx2, kMatmulAvx512;
extern const AttentionKernels kAttentionScalar, kAttentionAvx2, kAttentionAvx512;
extern const ElementwiseKernels kElementwiseScalar, kElementwiseAvx2, kElementwiseAvx512;

// Scalar for an instruction set that has no kernels of its own.
const KernelTable& kernel_table(Isa isa);

}  // namespace sluice::kernels
