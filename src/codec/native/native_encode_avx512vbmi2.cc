// Compresses with vpcompressb into a register: to memory it is slow on some CPUs.
#include "codec/native/native_encode_lines_avx512-inl.h"

namespace sluice::codec {
namespace {

[[gnu::always_inline]] inline std::byte* append(std::byte* rest, const std::byte*, Line line, Mask mask) {
  store(rest, {_mm512_maskz_compress_epi8(mask, line.v)});
  return rest + __builtin_popcountll(mask);
}

}  // namespace
}  // namespace sluice::codec

#include "codec/native/native_encode-inl.h"

namespace sluice::codec {

constinit const NativeEncodeKernels kNativeEncodeAvx512Vbmi2 = {split_lines, two_bits, three_bits};

}  // namespace sluice::codec
