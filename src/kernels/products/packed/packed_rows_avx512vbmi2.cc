#include "codec/native/native_codes_avx512vbmi2-inl.h"
#include "kernels/kernel_table.h"
#include "kernels/products/packed/packed_impl.h"
#include "kernels/products/packed/packed_rows_avx512-inl.h"

namespace sluice::kernels {

constinit const PackedKernels kPackedAvx512Vbmi2 = {few};

}  // namespace sluice::kernels
