// rms_norm() on a GPU: a warp a row.
#pragma once

#include <cstdint>

#include "kernels/gpu/lanes-inl.h"

namespace sluice::kernels::gpu {

struct RmsNormKernel {
  struct Args {
    const float* x;
    const float* weight;
    float* y;
    std::uint64_t columns, x_stride, y_stride;
    float eps;
  };
  // Both halves of the warp sum the squares; all lanes write.
  template <class Warp>
  static SLUICE_GPU void run(const Warp& warp, const Args& args) {
    using Float = typename Warp::Float;
    using Word = typename Warp::Word;
    const float* const x = args.x + warp.index() * args.x_stride;
    float* const y = args.y + warp.index() * args.y_stride;
    const auto columns = static_cast<std::uint32_t>(args.columns);
    const Word lane = warp.lane();
    Float squares(0.0f);
    for (std::uint32_t c = 0; c < columns; c += 16) {
      const Word at = Word(c) + lane % Word(16);
      const Float v = warp.load_if(at < Word(columns), x, at, Float(0.0f));
      squares = warp.fma(v, v, squares);
    }
    const Float mean = sum_tree(warp, squares) / Float(static_cast<float>(columns));
    const Float factor = Float(1.0f) / warp.sqrt(mean + Float(args.eps));
    for (std::uint32_t c = 0; c < columns; c += 32) {
      const Word at = Word(c) + lane;
      const auto mask = at < Word(columns);
      const Float v = warp.load_if(mask, x, at, Float(0.0f)) * factor;
      warp.store_if(mask, y, at, v * warp.load_if(mask, args.weight, at, Float(0.0f)));
    }
  }
};

}  // namespace sluice::kernels::gpu
