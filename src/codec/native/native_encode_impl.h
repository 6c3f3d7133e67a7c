// The implementations behind encode_native() and split_tiles(), one file per instruction set.
#pragma once

#include <cstddef>

#include "base/machine/cpu.h"

namespace sluice::codec {

// All sets write the same bytes. `rest` gets the exponents that are in no table, in order. Functions return
// the new end of `rest`; they may write up to 64 bytes behind it.
struct NativeEncodeKernels {
  // Splits 64·lines words of a row to lines of both planes, which are kTilePlaces apart.
  void (*split_lines)(const std::byte* words, std::size_t lines, std::byte* exponents,
                      std::byte* sign_mantissas);
  // Codes of 2 bits: 64 bytes for every 256 exponents, by a table of 3 exponents.
  std::byte* (*two_bits)(const std::byte* exponents, std::size_t turns, const std::byte* table,
                         std::byte* codes, std::byte* rest);
  // Codes of 3 bits: 192 bytes for every 512 exponents, by a table of 7 exponents.
  std::byte* (*three_bits)(const std::byte* exponents, std::size_t turns, const std::byte* table,
                           std::byte* codes, std::byte* rest);
};

extern const NativeEncodeKernels kNativeEncodeScalar;  // native_encode_scalar.cc; the oracle of the others
#if defined(__x86_64__)
extern const NativeEncodeKernels kNativeEncodeAvx2;
extern const NativeEncodeKernels kNativeEncodeAvx512;
extern const NativeEncodeKernels kNativeEncodeAvx512Vbmi2;
#endif

const NativeEncodeKernels& native_encode_kernels(Isa isa);  // scalar where no better kernel exists (NEON)

}  // namespace sluice::codec
