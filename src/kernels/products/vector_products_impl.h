// What products share: the other forms of arranged activations, and the grain of products of one token.
#pragma once

#include <cstddef>

#include "kernels/context.h"
#include "kernels/products/product_args.h"

namespace sluice::kernels {

// A multiple of whole cache lines of y, whole panels of rows, and whole groups of packed rows.
inline constexpr std::size_t kVectorRows = 32;
static_assert(kVectorRows % kRowGrain == 0);

// Activations that were rounded, for weights that are not multiplied so: as arrange_activations() leaves them
// where nothing rounds. In the context's scratch. REQUIRES: at most kTokensAtOnce tokens.
const float* widen_activations(const Context& ctx, const float* arranged, std::size_t tokens,
                               std::size_t columns);  // words/matmul.cc

// Codes (activation_codes.h) of activations that arrange_activations() has arranged: (tokens,
// activation_code_floats(columns)), to `codes`. REQUIRES: at most kTokensAtOnce tokens.
void code_arranged(const Context& ctx, const float* arranged, std::size_t tokens, std::size_t columns,
                   float* codes);  // codes/activation_codes.cc

}  // namespace sluice::kernels
