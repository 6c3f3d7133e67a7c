// Without VBMI2: appends what it keeps of a line eight places at a time.
#include "codec/native/native_encode_lines_avx512-inl.h"

namespace sluice::codec {
namespace {

[[gnu::always_inline]] inline std::byte* append(std::byte* rest, const std::byte* exponents, Line,
                                                Mask mask) {
  alignas(64) std::uint64_t masks[8];
  _mm512_store_si512(masks, _mm512_movm_epi8(mask));
  for (int i = 0; i < 8; ++i) {
    std::uint64_t eight;
    __builtin_memcpy(&eight, exponents + 8 * i, 8);
    const std::uint64_t kept = _pext_u64(eight, masks[i]);
    __builtin_memcpy(rest, &kept, 8);
    rest += __builtin_popcountll(masks[i]) / 8;
  }
  return rest;
}

}  // namespace
}  // namespace sluice::codec

#include "codec/native/native_encode-inl.h"

namespace sluice::codec {

constinit const NativeEncodeKernels kNativeEncodeAvx512 = {split_lines, two_bits, three_bits};

}  // namespace sluice::codec
