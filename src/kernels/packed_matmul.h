// Matrix products with weights as codec `native` stores them (view `packed`): sign+mantissa plane and coded
// exponents in tiles (docs/store-format.md, section 4.1). Eight rows at a time are made words again, in
// registers or in a buffer that stays in the cache, and multiplied: two thirds of the bytes come from memory,
// and the results have the bits of the `bf16` view, whatever m and instruction set.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/error.h"
#include "codec/native_chunk.h"
#include "codec/tiles.h"
#include "kernels/context.h"
#include "kernels/matmul.h"

namespace sluice::kernels {

// Exponents of whole groups of a matrix.
struct PackedChunk {
  std::span<const std::byte> bytes;  // as stored
  std::uint64_t first_group = 0, groups = 0;
  bool coded = false;  // else they are the exponents themselves, in tile order
};

// Non-owning. Chunks ascending, without gaps, covering all groups; nothing needs any alignment.
struct PackedWeight {
  codec::TileShape shape;
  const std::byte* sign_mantissas = nullptr;  // shape.places() bytes
  std::span<const PackedChunk> chunks;
};

// As matmul() of the words. Error(kCorrupt) if a chunk is no encoding of its groups: y is then unspecified.
// Working memory of a thread, kept for the next call: 16 bytes a column, and codec::native_scratch_bytes().
void packed_matmul(const Context& ctx, const float* packed, std::size_t tokens, const PackedWeight& w,
                   std::span<const float> bias, float* y, std::size_t y_stride);

// Whether `error` says that a chunk is no encoding: it has no place, since kernels know of no files.
bool is_damaged_weight(const Error& error);

// Whether it has kernels that compute out of the planes; without, words are made first, which takes longer
// than reading them.
bool multiplies_packed(Isa isa);

}  // namespace sluice::kernels
