#include "kernels/kernel_table.h"
#include "kernels/vec_neon-inl.h"

// After the lanes, which it is written with.
#include "kernels/elementwise-inl.h"

namespace sluice::kernels {

const ElementwiseKernels kElementwiseNeon = {rms_norm_row, silu_mul_range, add_scaled_range, softmax_row,
                                             exp_range};

}  // namespace sluice::kernels
