#include "kernels/kernel_table.h"
#include "kernels/matmul_impl.h"
#include "kernels/vec_avx512-inl.h"

// Must follow the include of the lanes.
#include "kernels/matmul-inl.h"

namespace sluice::kernels {

const MatmulKernels kMatmulAvx512 = {pack, rows, transposed};

}  // namespace sluice::kernels
