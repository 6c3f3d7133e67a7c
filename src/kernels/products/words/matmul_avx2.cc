#include "kernels/kernel_table.h"
#include "kernels/lanes/vec_avx2-inl.h"
#include "kernels/products/words/matmul_impl.h"

// Must follow the include of the lanes.
#include "kernels/products/words/matmul-inl.h"

namespace sluice::kernels {

const MatmulKernels kMatmulAvx2 = {pack, word_kernels<Bf16>(), word_kernels<F16>(), word_kernels<F32>()};

}  // namespace sluice::kernels
