#include "kernels/kernel_table.h"
#include "kernels/matmul_impl.h"
#include "kernels/vec_avx2-inl.h"

// Must follow the include of the lanes.
#include "kernels/matmul-inl.h"

namespace sluice::kernels {

const MatmulKernels kMatmulAvx2 = {pack, rows, transposed};

}  // namespace sluice::kernels
