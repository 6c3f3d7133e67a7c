#include "kernels/kernel_table.h"
#include "kernels/lanes/code_line_avx2-inl.h"
#include "kernels/products/codes/int8_matmul_impl.h"

// Must follow the include of the lanes.
#include "kernels/products/codes/int8_matmul-inl.h"

namespace sluice::kernels {

const Int8Kernels kInt8Avx2 = {int8_rows};

}  // namespace sluice::kernels
