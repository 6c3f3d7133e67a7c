#include "kernels/kernel_table.h"
#include "kernels/lanes/code_sums_avx512-inl.h"
#include "kernels/products/blocks/coded_blocks_impl.h"

// Must follow the include of the lanes.
#include "kernels/products/blocks/coded_blocks-inl.h"

namespace sluice::kernels {

const CodedBlockKernels kCodedBlocksAvx512 = kCodedBlocks;

}  // namespace sluice::kernels
