// The implementations behind bf16_split.h, one file per instruction set.
#pragma once

#include "codec/exponents/bf16_split.h"

namespace sluice::codec {

extern const Bf16SplitKernels kBf16SplitScalar;  // bf16_split.cc; the oracle of the other sets
#if defined(__x86_64__)
extern const Bf16SplitKernels kBf16SplitAvx2;
extern const Bf16SplitKernels kBf16SplitAvx512;
#endif

}  // namespace sluice::codec
