#include "kernels/kernel_table.h"
#include "kernels/vec_neon-inl.h"

// After the lanes, which it is written with.
#include "kernels/matmul-inl.h"

namespace sluice::kernels {

const MatmulKernels kMatmulNeon = {pack, rows, transposed};

}  // namespace sluice::kernels
