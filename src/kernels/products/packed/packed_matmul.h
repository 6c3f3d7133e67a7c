// Matrix products with weights as codec `native` stores them (view `packed`): sign+mantissa plane and coded
// exponents in tiles (docs/store-format.md, section 4.1). Eight rows at a time are decoded to words, in
// registers or in a buffer that stays in the cache, and multiplied: two thirds of the bytes come from memory,
// and the results equal those of the `bf16` view, bit for bit, for every number of tokens and instruction
// set. products.h has the product; the format is codec::kFormatPacked.
#pragma once

#include "base/error.h"
#include "base/machine/cpu.h"

namespace sluice::kernels {

// Whether `error` reports a damaged chunk: that error has no place, since kernels know no files.
bool is_damaged_weight(const Error& error);

// Whether the instruction set has kernels that compute from the planes; without them, words are made first,
// which takes longer than reading them.
bool multiplies_packed(Isa isa);

}  // namespace sluice::kernels
