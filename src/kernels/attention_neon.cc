#include "kernels/kernel_table.h"
#include "kernels/vec_neon-inl.h"

// After the lanes, which it is written with.
#include "kernels/attention-inl.h"

namespace sluice::kernels {

const AttentionKernels kAttentionNeon = {attention_item};

}  // namespace sluice::kernels
