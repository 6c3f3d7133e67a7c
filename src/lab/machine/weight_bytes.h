// Sizes of weights that no file holds: those of published models and of machines that are described.
#pragma once

#include "base/bytes.h"
#include "codec/matrix_format.h"

namespace sluice::lab {

// Bytes of this many numbers of `bits` bits each, without scales and padding.
constexpr double bytes_at(double numbers, double bits) { return numbers * bits / 8; }

// Bytes of this many numbers as checkpoints have them, BF16.
inline double word_bytes(double numbers) {
  return numbers * static_cast<double>(codec::kFormatBf16.bytes({1, 1}));
}
inline double word_bits() { return 8 * word_bytes(1); }

// How many times the bytes of its sign+mantissa plane a matrix of words takes.
inline double words_to_plane() {
  return word_bytes(1) / static_cast<double>(codec::kFormatSplit.plane_bytes({1, 1}, 0));
}

}  // namespace sluice::lab
