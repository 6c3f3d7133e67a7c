// Asymmetric quantisation of one group of weights, plainly and in double, as SPEC 4.2 prints it (SliceMoE,
// AMAT). Matrices of a store are coded by sliced_matrix.h, whose oracle this is; `sluice lab quantise` and
// the baselines of Table 1 (quantiser_variants.h) use it.
#pragma once

#include <span>
#include <vector>

#include "codec/slice_bits.h"

namespace sluice::codec {

enum class ScaleType {
  kFp16,    // as it is stored: rounded to binary16, within [2^-24, 65504]
  kDouble,  // as it is computed
};

// weight ≈ scale · (code − zero)
struct AffineGroup {
  double scale = 1;
  unsigned zero = 0;            // in [0, 2^bits − 1], and so is every code
  std::vector<unsigned> codes;  // of the weights
};

// `bits` 1 to 16. No weights: scale 1, zero 0. Error(kInvalid) with the index of a weight that is infinite or
// NaN.
AffineGroup quantise_affine(std::span<const double> weights, unsigned bits, ScaleType type);

// A weight again, from both slices, from the higher one alone, and from that one with the middle of what the
// other may be in its place (`amat_center`, ours: no bias, and nothing more is read).
double high_view(const AffineGroup& group, unsigned code);
double low_view(const AffineGroup& group, unsigned code, unsigned shift);
double center_view(const AffineGroup& group, unsigned code, unsigned shift);

// round() of SPEC 4.2, ⌊x + 1/2⌋: a half goes up, below zero, too.
double round_half_up(double x);
// The stored scale nearest to `scale`: binary16 within [2^-24, 65504]. REQUIRES: scale >= 0.
double fp16_scale(double scale);

}  // namespace sluice::codec
