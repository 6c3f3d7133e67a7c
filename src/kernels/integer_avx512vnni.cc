#include "kernels/integer_impl.h"
#include "kernels/integer_line_avx512vnni-inl.h"
#include "kernels/kernel_table.h"

// Must follow the include of the lanes.
#include "kernels/integer-inl.h"

namespace sluice::kernels {

const IntegerKernels kIntegerAvx512Vnni = {integer_slices<VectorTiles>,
                                           integer_strips<VectorTiles, DenseCodes>};

}  // namespace sluice::kernels
