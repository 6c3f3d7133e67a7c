// The implementations behind native_kernels(), one file per instruction set.
#pragma once

#include "codec/native/native_chunk.h"

namespace sluice::codec {

// Working memory is three rooms of this size, on cache lines: for literals, exponents of tier 3, exponents of
// tier 2. A vector may read a line that begins at the last place of a room, or write one that begins a few
// places behind it.
constexpr std::uint64_t native_room_bytes(std::uint64_t blocks) {
  return blocks * kTilePlaces + 2 * kTileColumns;
}

extern const NativeKernels kNativeScalar;  // native_chunk_scalar.cc; the oracle of the other sets
#if defined(__x86_64__)
extern const NativeKernels kNativeAvx2;
extern const NativeKernels kNativeAvx512;
extern const NativeKernels kNativeAvx512Vbmi2;
#elif defined(__aarch64__)
extern const NativeKernels kNativeNeon;
#endif

}  // namespace sluice::codec
