#include "kernels/kernel_table.h"
#include "kernels/matmul_impl.h"
#include "kernels/vec_neon-inl.h"

// Must follow the include of the lanes.
#include "kernels/matmul-inl.h"

namespace sluice::kernels {

const MatmulKernels kMatmulNeon = {pack, rows, transposed};

}  // namespace sluice::kernels
