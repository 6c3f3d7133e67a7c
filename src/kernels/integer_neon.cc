#include "kernels/integer_impl.h"
#include "kernels/integer_line_neon-inl.h"
#include "kernels/kernel_table.h"

// Must follow the include of the lanes.
#include "kernels/integer-inl.h"

namespace sluice::kernels {

const IntegerKernels kIntegerNeon = {integer_slices<VectorTiles>, integer_strips<VectorTiles, DenseCodes>};

}  // namespace sluice::kernels
