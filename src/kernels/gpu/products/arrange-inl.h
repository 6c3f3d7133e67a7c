// Activations in the order that products read (words/matmul.h), on a GPU.
#pragma once

#include <cstdint>

#include "kernels/gpu/products/product_items.h"

namespace sluice::kernels::gpu {

struct ArrangeKernel {
  struct Args {
    const float* x;
    float* arranged;
    std::uint64_t x_stride;
    std::uint32_t columns, parts;  // parts of a row: of 256 numbers
  };
  static constexpr std::uint32_t kPart = 256;

  // A part of a token.
  template <class Warp>
  static SLUICE_GPU void run(const Warp& warp, const Args& args) {
    using Word = typename Warp::Word;
    const std::uint64_t token = warp.index() / args.parts;
    const auto first = static_cast<std::uint32_t>(warp.index() % args.parts) * kPart;
    const std::uint32_t floats = arranged_columns(args.columns);
    const float* const x = args.x + token * args.x_stride;
    float* const arranged = args.arranged + token * floats;
    for (std::uint32_t half = first; half < first + kPart && half < floats; half += 32) {
      const Word place = warp.lane(), column = Word(half) + place % Word(16) * Word(2) + place / Word(16);
      warp.store(arranged, Word(half) + place,
                 warp.load_if(column < Word(args.columns), x, column, typename Warp::Float(0.0f)));
    }
  }
};

}  // namespace sluice::kernels::gpu
