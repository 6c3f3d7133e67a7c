// The packed view of a matrix as kernels take it.
#pragma once

#include <vector>

#include "fetch/piece_layout.h"
#include "kernels/packed_matmul.h"

namespace sluice::engine {

// A matrix in tiles whose planes lie in the regions `words` and `exponents` of its expert. Its chunks are
// listed in `chunks`, which must outlive the result, as the regions must.
kernels::PackedWeight packed_view(const fetch::PiecePlace& place, const std::byte* words,
                                  const std::byte* exponents, std::vector<kernels::PackedChunk>& chunks);

}  // namespace sluice::engine
