#include "kernels/code_line_neon-inl.h"
#include "kernels/kernel_table.h"

// After the lanes, which it is written with.
#include "kernels/int8_matmul-inl.h"

namespace sluice::kernels {

const Int8Kernels kInt8Neon = {int8_strips};

}  // namespace sluice::kernels
