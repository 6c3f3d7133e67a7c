// The implementations of one instruction set, besides those of products: products/format_kernels.h has them
// by format. To add a set: its x_ISA.cc files, the names of their kernels here, its columns in
// kernel_table.cc and format_kernels.cc.
#pragma once

#include "base/machine/cpu.h"
#include "kernels/context.h"

namespace sluice::kernels {

// Each stands in the _impl.h of its operation; who calls one includes that.
struct AttentionKernels;
struct BlockKernels;
struct CodedBlockKernels;
struct ElementwiseKernels;
struct Int8Kernels;
struct IntegerKernels;
struct MatmulKernels;
struct PackedKernels;
struct SlicedKernels;
struct TileKernels;

// No pointer is null.
struct KernelTable {
  const AttentionKernels* attention;
  const ElementwiseKernels* elementwise;
  const TileKernels *tiles, *pairs;  // for activations that are rounded
};

extern const MatmulKernels kMatmulScalar, kMatmulAvx2, kMatmulAvx512, kMatmulNeon;
extern const AttentionKernels kAttentionScalar, kAttentionAvx2, kAttentionAvx512, kAttentionNeon;
extern const ElementwiseKernels kElementwiseScalar, kElementwiseAvx2, kElementwiseAvx512, kElementwiseNeon;
extern const SlicedKernels kSlicedScalar, kSlicedAvx2, kSlicedAvx512, kSlicedNeon;
extern const Int8Kernels kInt8Scalar, kInt8Avx2, kInt8Avx512, kInt8Neon;
extern const IntegerKernels kIntegerScalar, kIntegerAvx2, kIntegerAvx512, kIntegerAvx512Vnni, kIntegerAmxInt8,
    kIntegerNeon;
extern const BlockKernels kBlocksAvx2, kBlocksAvx512;
extern const CodedBlockKernels kCodedBlocksScalar, kCodedBlocksAvx2;
extern const PackedKernels kPackedNone, kPackedAvx512, kPackedAvx512Vbmi2;
extern const TileKernels kTilesScalar, kTilesAmx;
extern const TileKernels kPairsScalar, kPairsAvx512Bf16;

// Returns the scalar table for an instruction set without kernels of its own.
const KernelTable& kernel_table(Isa isa);

// REQUIRES: ctx.rounds().
inline const TileKernels& tile_kernels(const Context& ctx) {
  const KernelTable& table = kernel_table(ctx.isa);
  return ctx.products == Products::kTiles ? *table.tiles : *table.pairs;
}

}  // namespace sluice::kernels
