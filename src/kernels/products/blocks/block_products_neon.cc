#include "kernels/kernel_table.h"
#include "kernels/lanes/code_bytes_neon-inl.h"
#include "kernels/products/blocks/block_products_impl.h"

// Must follow the include of the lanes.
#include "kernels/products/blocks/block_products-inl.h"

namespace sluice::kernels {

const BlockKernels kBlocksNeon = kBlocks;

}  // namespace sluice::kernels
