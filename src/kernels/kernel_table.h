// The implementations of one instruction set. To add a set: its x_ISA.cc files, names here, two lines in
// kernel_table.cc.
#pragma once

#include "base/cpu.h"
#include "kernels/attention_impl.h"
#include "kernels/context.h"
#include "kernels/elementwise_impl.h"
#include "kernels/int8_matmul_impl.h"
#include "kernels/integer_impl.h"
#include "kernels/matmul_impl.h"
#include "kernels/packed_impl.h"
#include "kernels/sliced_matmul_impl.h"
#include "kernels/tile_impl.h"

namespace sluice::kernels {

struct KernelTable {
  MatmulKernels matmul;
  AttentionKernels attention;
  ElementwiseKernels elementwise;
  SlicedKernels sliced;
  Int8Kernels int8;
  PackedKernels packed;
  TileKernels tiles, pairs;
  IntegerKernels integer;
};

extern const MatmulKernels kMatmulScalar, kMatmulAvx2, kMatmulAvx512, kMatmulNeon;
extern const AttentionKernels kAttentionScalar, kAttentionAvx2, kAttentionAvx512, kAttentionNeon;
extern const ElementwiseKernels kElementwiseScalar, kElementwiseAvx2, kElementwiseAvx512, kElementwiseNeon;
extern const SlicedKernels kSlicedScalar, kSlicedAvx2, kSlicedAvx512, kSlicedNeon;
extern const Int8Kernels kInt8Scalar, kInt8Avx2, kInt8Avx512, kInt8Neon;
extern const IntegerKernels kIntegerScalar, kIntegerAvx2, kIntegerAvx512, kIntegerAvx512Vnni, kIntegerAmxInt8,
    kIntegerNeon;
extern const PackedKernels kPackedAvx512, kPackedAvx512Vbmi2;
extern const TileKernels kTilesScalar, kTilesAmx;
extern const TileKernels kPairsScalar, kPairsAvx512Bf16;

// Returns the scalar table for an instruction set without kernels of its own.
const KernelTable& kernel_table(Isa isa);

// REQUIRES: ctx.rounds().
inline const TileKernels& tile_kernels(const Context& ctx) {
  const KernelTable& table = kernel_table(ctx.isa);
  return ctx.products == Products::kTiles ? table.tiles : table.pairs;
}

}  // namespace sluice::kernels
