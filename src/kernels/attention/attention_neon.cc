#include "kernels/attention/attention_impl.h"
#include "kernels/kernel_table.h"
#include "kernels/lanes/vec_neon-inl.h"

// Must follow the include of the lanes.
#include "kernels/attention/attention-inl.h"

namespace sluice::kernels {

const AttentionKernels kAttentionNeon = {attention_item};

}  // namespace sluice::kernels
