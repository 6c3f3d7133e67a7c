#include "kernels/code_line_avx512-inl.h"
#include "kernels/int8_matmul_impl.h"
#include "kernels/kernel_table.h"

// Must follow the include of the lanes.
#include "kernels/int8_matmul-inl.h"

namespace sluice::kernels {

const Int8Kernels kInt8Avx512 = {int8_strips};

}  // namespace sluice::kernels
