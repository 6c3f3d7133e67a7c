#include "kernels/kernel_table.h"
#include "kernels/vec_avx512-inl.h"

// After the lanes, which it is written with.
#include "kernels/matmul-inl.h"

namespace sluice::kernels {

const MatmulKernels kMatmulAvx512 = {pack, rows, transposed};

}  // namespace sluice::kernels
