// Numbers into blocks: for synthetic models and tests. Scales are chosen by the largest number of a
// sub-block, in one pass; programs that publish models search for better ones.
#pragma once

#include <cstddef>
#include <cstdint>

#include "codec/matrix_format.h"

namespace sluice::codec {

// Whether a row of this format can be written so: the formats of GGUF files with one plane of blocks.
bool can_quantise(const MatrixFormat& format);

// Writes `columns` finite numbers, whole blocks, to `out`, format.plane_bytes({1, columns}, 0) bytes. Each
// number becomes the nearest that its sub-block can have with the scale that was chosen. REQUIRES:
// can_quantise().
void quantise_row(const MatrixFormat& format, const float* numbers, std::uint64_t columns, std::byte* out);

}  // namespace sluice::codec
