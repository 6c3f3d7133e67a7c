#include "kernels/kernel_table.h"
#include "kernels/lanes/vec_neon-inl.h"
#include "kernels/products/words/matmul_impl.h"

// Must follow the include of the lanes.
#include "kernels/products/words/matmul-inl.h"

namespace sluice::kernels {

const MatmulKernels kMatmulNeon = {pack, word_kernels<Bf16>(), word_kernels<F16>(), word_kernels<F32>()};

}  // namespace sluice::kernels
