// Asymmetric quantisation of one group of weights, in plain double arithmetic, as SPEC 4.2 prints it
// (SliceMoE, AMAT). This is the oracle of sliced_matrix.h, which codes the matrices of a store; `sluice lab
// quantise` and the baselines of Table 1 (quantiser_variants.h) also use it.
#pragma once

#include <span>
#include <vector>

#include "codec/slices/slice_bits.h"

namespace sluice::codec {

enum class ScaleType {
  kFp16,    // as a store holds it: rounded to binary16, within [2^-24, 65504]
  kDouble,  // as computed
};

// weight ≈ scale · (code − zero)
struct AffineGroup {
  double scale = 1;
  unsigned zero = 0;            // in [0, 2^bits − 1], as is every code
  std::vector<unsigned> codes;  // one for each weight
};

// `bits` 1 to 16. Without weights: scale 1, zero 0. Error(kInvalid) with the index of a weight that is
// infinite or NaN.
AffineGroup quantise_affine(std::span<const double> weights, unsigned bits, ScaleType type);

// The weight that a code stands for: from both slices; from the higher slice alone; from the higher slice
// with the middle of what the lower slice may be (`amat_center`, ours: without bias, and nothing more is
// read).
double high_view(const AffineGroup& group, unsigned code);
double low_view(const AffineGroup& group, unsigned code, unsigned shift);
double center_view(const AffineGroup& group, unsigned code, unsigned shift);

// round() of SPEC 4.2, ⌊x + 1/2⌋: halves go up, also below zero.
double round_half_up(double x);
// The stored scale nearest to `scale`: binary16 within [2^-24, 65504]. REQUIRES: scale >= 0.
double fp16_scale(double scale);

}  // namespace sluice::codec
