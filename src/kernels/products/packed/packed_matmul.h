// Matrix products with weights as codec `native` stores them (view `packed`): sign+mantissa plane and coded
// exponents in tiles (docs/store-format.md, section 4.1). Eight rows at a time are decoded to words, in
// registers or in a buffer that stays in the cache, and multiplied: two thirds of the bytes come from memory,
// and the results equal those of the `bf16` view, bit for bit, for every number of tokens and instruction
// set.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/error.h"
#include "codec/native/native_chunk.h"
#include "codec/native/tiles.h"
#include "kernels/context.h"
#include "kernels/products/words/matmul.h"

namespace sluice::kernels {

// Exponents of whole groups of a matrix.
struct PackedChunk {
  std::span<const std::byte> bytes;  // as stored
  std::uint64_t first_group = 0, groups = 0;
  bool coded = false;  // otherwise the bytes are exponents in tile order
};

// Non-owning. Chunks are ascending, without gaps, and cover all groups; no alignment is needed.
struct PackedWeight {
  codec::TileShape shape;
  const std::byte* sign_mantissas = nullptr;  // shape.places() bytes
  std::span<const PackedChunk> chunks;
};

// As matmul() of the words. Error(kCorrupt) if a chunk is not a valid encoding of its groups: y is then
// unspecified. Working memory per thread, kept for the next call: 16 bytes per column, and
// codec::native_scratch_bytes().
void packed_matmul(const Context& ctx, const float* packed, std::size_t tokens, const PackedWeight& w,
                   std::span<const float> bias, float* y, std::size_t y_stride);

// Whether `error` reports a damaged chunk: that error has no place, since kernels know no files.
bool is_damaged_weight(const Error& error);

// Whether the instruction set has kernels that compute from the planes; without them, words are made first,
// which takes longer than reading them.
bool multiplies_packed(Isa isa);

}  // namespace sluice::kernels
