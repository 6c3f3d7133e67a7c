#include "codec/native/native_codes_avx512vbmi2-inl.h"
#include "codec/native/native_tiers-inl.h"

namespace sluice::codec {

constinit const NativeKernels kNativeAvx512Vbmi2 = {decode, merge, merge_raw};

}  // namespace sluice::codec
