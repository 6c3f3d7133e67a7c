// The implementations behind encode_native() and split_tiles(), one file per instruction set.
#pragma once

#include <cstddef>

#include "base/cpu.h"

namespace sluice::codec {

// All write the same bytes. `rest` gets those exponents that no table entry is, in order; the end of them is
// returned, and up to 64 bytes from it on may be written.
struct NativeEncodeKernels {
  // 64·lines words of a row to lines of both planes, which are kTilePlaces apart.
  void (*split_lines)(const std::byte* words, std::size_t lines, std::byte* exponents,
                      std::byte* sign_mantissas);
  // Codes of 2 bits: of each 256 exponents 64 bytes, by a table of 3 exponents.
  std::byte* (*two_bits)(const std::byte* exponents, std::size_t turns, const std::byte* table,
                         std::byte* codes, std::byte* rest);
  // Codes of 3 bits: of each 512 exponents 192 bytes, by a table of 7 exponents.
  std::byte* (*three_bits)(const std::byte* exponents, std::size_t turns, const std::byte* table,
                           std::byte* codes, std::byte* rest);
};

extern const NativeEncodeKernels kNativeEncodeScalar;  // native_encode_scalar.cc; the oracle of the others
#if defined(__x86_64__)
extern const NativeEncodeKernels kNativeEncodeAvx2;
extern const NativeEncodeKernels kNativeEncodeAvx512;
extern const NativeEncodeKernels kNativeEncodeAvx512Vbmi2;
#endif

const NativeEncodeKernels& native_encode_kernels(Isa isa);  // scalar where there is no better (NEON, so far)

}  // namespace sluice::codec
