#include "kernels/elementwise/elementwise_impl.h"
#include "kernels/kernel_table.h"
#include "kernels/lanes/vec_avx2-inl.h"

// Must follow the include of the lanes.
#include "kernels/elementwise/elementwise-inl.h"

namespace sluice::kernels {

const ElementwiseKernels kElementwiseAvx2 = {
    rms_norm_row,     silu_mul_range, clamped_mul_range, clamped_mul_pairs_range,
    add_scaled_range, softmax_row,    exp_range};

}  // namespace sluice::kernels
