#include "kernels/kernel_table.h"
#include "kernels/lanes/code_sums_neon-inl.h"
#include "kernels/products/blocks/coded_blocks_impl.h"

// Must follow the include of the lanes.
#include "kernels/products/blocks/coded_blocks-inl.h"

namespace sluice::kernels {

const CodedBlockKernels kCodedBlocksNeon = kCodedBlocks;

}  // namespace sluice::kernels
