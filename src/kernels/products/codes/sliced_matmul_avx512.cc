#include "kernels/kernel_table.h"
#include "kernels/lanes/code_line_avx512-inl.h"
#include "kernels/products/codes/sliced_matmul_impl.h"

// Must follow the include of the lanes.
#include "kernels/products/codes/sliced_matmul-inl.h"

namespace sluice::kernels {

const SlicedKernels kSlicedAvx512 = kSliced;

}  // namespace sluice::kernels
