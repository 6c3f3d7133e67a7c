#include "codec/native_codes_avx512-inl.h"
#include "codec/native_tiers-inl.h"

namespace sluice::codec {

constinit const NativeKernels kNativeAvx512 = {decode, merge, merge_raw};

}  // namespace sluice::codec
