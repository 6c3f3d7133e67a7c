#include "kernels/kernel_table.h"
#include "kernels/lanes/code_sums_avx512vnni-inl.h"
#include "kernels/products/blocks/coded_blocks_impl.h"

// Must follow the include of the lanes.
#include "kernels/products/blocks/coded_blocks-inl.h"

namespace sluice::kernels {

const CodedBlockKernels kCodedBlocksAvx512Vnni = kCodedBlocks;

}  // namespace sluice::kernels
