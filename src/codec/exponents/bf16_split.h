// BF16 words as two planes of bytes: exponents, which compress well, and sign with mantissa, which does not.
//
//   word   s eeeeeeee mmmmmmm      bit 15 sign, 14..7 exponent, 6..0 mantissa; little-endian in memory
//   E      eeeeeeee                exponent plane, one byte per word
//   SM     s mmmmmmm               sign in bit 7, mantissa below
//
// Bijective on all 65,536 words: NaN payloads, infinities, zeros of both signs, subnormals (ZipMoE, section
// 3; SPEC 1.2).
#pragma once

#include <cstddef>
#include <span>

#include "base/machine/cpu.h"

namespace sluice::codec {

// Both directions for one instruction set. `words` has 2·count bytes; no pointer needs any alignment. Regions
// must not overlap, except that merge's exponents may be the upper half of `words`; nothing is read or
// written outside the regions. Bytes moved: 2·count in and 2·count out.
struct Bf16SplitKernels {
  void (*split)(const std::byte* words, std::size_t count, std::byte* exponents, std::byte* sign_mantissas);
  void (*merge)(const std::byte* exponents, const std::byte* sign_mantissas, std::size_t count,
                std::byte* words);
};

// For an instruction set of available_isas(); returns the scalar kernels where no better ones exist (NEON, so
// far).
const Bf16SplitKernels& bf16_split_kernels(Isa isa);

// The same operations with checked sizes: words.size() == 2·exponents.size() == 2·sign_mantissas.size().
void split_bf16(std::span<const std::byte> words, std::span<std::byte> exponents,
                std::span<std::byte> sign_mantissas, Isa isa = best_isa());
void merge_bf16(std::span<const std::byte> exponents, std::span<const std::byte> sign_mantissas,
                std::span<std::byte> words, Isa isa = best_isa());

}  // namespace sluice::codec
