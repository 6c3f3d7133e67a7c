// The implementations of one instruction set. To add a set: its x_ISA.cc files, names here, two lines in
// kernel_table.cc.
#pragma once

#include "base/machine/cpu.h"
#include "kernels/context.h"

namespace sluice::kernels {

// Each stands in the _impl.h of its operation; who calls one includes that.
struct AttentionKernels;
struct ElementwiseKernels;
struct Int8Kernels;
struct IntegerKernels;
struct MatmulKernels;
struct PackedKernels;
struct SlicedKernels;
struct TileKernels;

// No pointer is null. Which kernels multiply with a format says products/format_kernels.h, which composes its
// rows from these.
struct KernelTable {
  const MatmulKernels* matmul;
  const AttentionKernels* attention;
  const ElementwiseKernels* elementwise;
  const SlicedKernels* sliced;
  const Int8Kernels* int8;
  const PackedKernels* packed;
  const TileKernels *tiles, *pairs;
  const IntegerKernels* integer;
};

extern const MatmulKernels kMatmulScalar, kMatmulAvx2, kMatmulAvx512, kMatmulNeon;
extern const AttentionKernels kAttentionScalar, kAttentionAvx2, kAttentionAvx512, kAttentionNeon;
extern const ElementwiseKernels kElementwiseScalar, kElementwiseAvx2, kElementwiseAvx512, kElementwiseNeon;
extern const SlicedKernels kSlicedScalar, kSlicedAvx2, kSlicedAvx512, kSlicedNeon;
extern const Int8Kernels kInt8Scalar, kInt8Avx2, kInt8Avx512, kInt8Neon;
extern const IntegerKernels kIntegerScalar, kIntegerAvx2, kIntegerAvx512, kIntegerAvx512Vnni, kIntegerAmxInt8,
    kIntegerNeon;
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
