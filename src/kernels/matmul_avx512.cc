#include "kernels/kernel_table.h"
#include "kernels/vec_avx512-inl.h"
// The algorithm needs the lanes above.
#include "kernels/matmul-inl.h"

namespace sluice::kernels {

const MatmulKernels kMatmulAvx512 = {pack, rows, transposed};

}  // namespace sluice::kernels
