#include "kernels/kernel_table.h"
#include "kernels/products/codes/integer_impl.h"
#include "kernels/products/codes/integer_line_avx512vnni-inl.h"

// Must follow the include of the lanes.
#include "kernels/products/codes/integer-inl.h"

namespace sluice::kernels {

const IntegerKernels kIntegerAvx512Vnni = integer_kernels<VectorTiles>();

}  // namespace sluice::kernels
