// One range of the rows of a product of one token, on the calling thread. Ranges begin at multiples of
// kVectorRows.
#pragma once

#include <cstddef>

#include "kernels/products/vector_products.h"

namespace sluice::kernels {

// A multiple of whole cache lines of y, whole panels of rows, and whole groups of packed rows.
inline constexpr std::size_t kVectorRows = 32;

void word_rows(const Context& ctx, const VectorProduct& product, std::size_t begin,
               std::size_t end);  // matmul.cc
// Activations that were rounded, for weights that are not multiplied so: as pack_activations() leaves them
// where nothing rounds. In the context's scratch. REQUIRES: at most kTokensAtOnce tokens.
const float* widen_activations(const Context& ctx, const float* packed, std::size_t tokens,
                               std::size_t cols);  // matmul.cc

// Codes (activation_codes.h) of activations that pack_activations() has packed: (tokens,
// activation_code_floats(columns)), to `codes`. REQUIRES: at most kTokensAtOnce tokens.
void code_packed(const Context& ctx, const float* packed, std::size_t tokens, std::size_t columns,
                 float* codes);  // activation_codes.cc

// REQUIRES: !ctx.rounds(); or coded activations, and product.packed as code_packed() leaves them.
void int8_rows(const Context& ctx, const VectorProduct& product, std::size_t begin,
               std::size_t end);  // int8_matmul.cc
void sliced_rows(const Context& ctx, const VectorProduct& product, std::size_t begin,
                 std::size_t end);  // sliced_matmul.cc
// Both: false if a chunk is damaged.
bool packed_rows(const Context& ctx, const VectorProduct& product, std::size_t begin,
                 std::size_t end);  // packed_matmul.cc
bool tile_rows(const Context& ctx, const VectorProduct& product, std::size_t begin,
               std::size_t end);  // tile_matmul.cc; REQUIRES: ctx.rounds(), BF16 weights

}  // namespace sluice::kernels
