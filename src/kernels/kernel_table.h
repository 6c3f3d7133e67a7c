// The implementations of one instruction set. A new one: its x_ISA.cc files, names here, two lines in
// kernel_table.cc.
#pragma once

#include "base/cpu.h"
#include "kernels/attention_impl.h"
#include "kernels/elementwise_impl.h"
#include "kernels/matmul_impl.h"
#include "kernels/packed_impl.h"
#include "kernels/tile_impl.h"

namespace sluice::kernels {

struct KernelTable {
  MatmulKernels matmul;
  AttentionKernels attention;
  ElementwiseKernels elementwise;
  PackedKernels packed;
  TileKernels tiles;
};

extern const MatmulKernels kMatmulScalar, kMatmulAvx2, kMatmulAvx512;
extern const AttentionKernels kAttentionScalar, kAttentionAvx2, kAttentionAvx512;
extern const ElementwiseKernels kElementwiseScalar, kElementwiseAvx2, kElementwiseAvx512;
extern const PackedKernels kPackedAvx512, kPackedAvx512Vbmi2;
extern const TileKernels kTilesScalar, kTilesAmx;

// Scalar for an instruction set that has no kernels of its own.
const KernelTable& kernel_table(Isa isa);

}  // namespace sluice::kernels
