// What stands between the products of an MLP whose gate and up have different formats: numbers that are there
// already become those that `down` reads.
#pragma once

#include <cstdint>

#include "kernels/gpu/products/product-inl.h"

namespace sluice::kernels::gpu {

struct GatingKernel {
  // `item`: an output of sides whose sums lie at `a` and `b`, (tokens, rows) each; no biases.
  struct Args {
    ProductItem item;
    const float *a, *b;
    std::uint32_t parts;  // parts of a token: 256 numbers each
  };
  static constexpr std::uint32_t kPart = 256;

  template <class Warp>
  static SLUICE_GPU void run(const Warp& warp, const Args& args) {
    using Float = typename Warp::Float;
    using Word = typename Warp::Word;
    const auto token = static_cast<std::uint32_t>(warp.index() / args.parts);
    const auto first = static_cast<std::uint32_t>(warp.index() % args.parts) * kPart;
    const std::uint32_t rows = args.item.rows;
    const float* const a = args.a + std::uint64_t{token} * rows;
    const float* const b = args.b + std::uint64_t{token} * rows;
    for (std::uint32_t row = first; row < first + kPart && row < rows; row += 32) {
      const Word on = warp.lane(), at = Word(row) + on;
      const auto mask = at < Word(rows);
      put_output(warp, args.item, row, on, token, mask, warp.load_if(mask, a, at, Float(0.0f)),
                 warp.load_if(mask, b, at, Float(0.0f)));
    }
    if (first == 0) put_end(warp, args.item, token);
  }
};

}  // namespace sluice::kernels::gpu
