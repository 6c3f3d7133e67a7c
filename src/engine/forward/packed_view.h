// The packed view of a matrix in the form that kernels take.
#pragma once

#include <vector>

#include "fetch/piece_layout.h"
#include "kernels/products/packed/packed_matmul.h"

namespace sluice::engine {

// A matrix in tiles whose planes are in the regions `words` and `exponents` of its expert. Lists its chunks
// in `chunks`, which must outlive the result, as must the regions.
kernels::PackedWeight packed_view(const fetch::PiecePlace& place, const std::byte* words,
                                  const std::byte* exponents, std::vector<kernels::PackedChunk>& chunks);

}  // namespace sluice::engine
