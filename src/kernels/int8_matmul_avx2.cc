#include "kernels/code_line_avx2-inl.h"
#include "kernels/int8_matmul_impl.h"
#include "kernels/kernel_table.h"

// Must follow the include of the lanes.
#include "kernels/int8_matmul-inl.h"

namespace sluice::kernels {

const Int8Kernels kInt8Avx2 = {int8_strips};

}  // namespace sluice::kernels
