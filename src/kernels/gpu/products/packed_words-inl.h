// Words of bytes of two planes.
#pragma once

#include <cstdint>

#include "kernels/gpu/warp.h"

namespace sluice::kernels::gpu {

// Two BF16 words, that of the earlier column in the lower half, of two bytes of each plane: bytes 0 and 1
// with kLowPair, 2 and 3 with kHighPair.
inline constexpr std::uint32_t kLowPair = 0x4140, kHighPair = 0x4342;

template <class Warp>
SLUICE_GPU typename Warp::Word two_words(const Warp& warp, typename Warp::Word exponents,
                                         typename Warp::Word sign_mantissas, std::uint32_t pair) {
  using Word = typename Warp::Word;
  const Word e = warp.permute(exponents, Word(0), Word(pair)),
             s = warp.permute(sign_mantissas, Word(0), Word(pair));
  return (s & Word(0x00800080u)) << Word(8) | e << Word(7) | (s & Word(0x007f007fu));
}

}  // namespace sluice::kernels::gpu
