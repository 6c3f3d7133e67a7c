// rms_norm() on a GPU.
#pragma once

#include <cstdint>

#include "kernels/gpu/lanes-inl.h"

namespace sluice::kernels::gpu {

// Columns that a warp writes, where a row has several warps.
inline constexpr std::uint32_t kNormPart = 512;

// A warp has a part of a row's columns. Each reads all of the row for the sum.
struct RmsNormKernel {
  struct Args {
    const float* x;
    const float* weight;
    float* y;
    std::uint64_t columns, x_stride, y_stride, parts;  // parts: of kNormPart columns, or 1 that is the row
    float eps;
  };
  template <class Warp>
  static SLUICE_GPU void run(const Warp& warp, const Args& args) {
    using Float = typename Warp::Float;
    using Word = typename Warp::Word;
    const std::uint64_t row = warp.index() / args.parts;
    const float* const x = args.x + row * args.x_stride;
    float* const y = args.y + row * args.y_stride;
    const auto columns = static_cast<std::uint32_t>(args.columns);
    const Word lane = warp.lane();
    // The lower half of the warp has the sixteen lanes of the sum, and gets what the upper half has read.
    Float squares(0.0f);
    for (std::uint32_t begin = 0; begin < columns; begin += kAtOnce * 32) {
      Float v[kAtOnce];
      SLUICE_GPU_UNROLL
      for (std::uint32_t i = 0; i < kAtOnce; ++i) {
        const Word at = Word(begin + 32 * i) + lane;
        v[i] = warp.load_if(at < Word(columns), x, at, Float(0.0f));
      }
      SLUICE_GPU_UNROLL
      for (std::uint32_t i = 0; i < kAtOnce; ++i) {
        const Float upper = warp.shuffle_xor(v[i], 16);
        squares = warp.fma(upper, upper, warp.fma(v[i], v[i], squares));
      }
    }
    squares = warp.shuffle(squares, lane % Word(16));
    const Float mean = sum_tree(warp, squares) / Float(static_cast<float>(columns));
    const Float factor = Float(1.0f) / warp.sqrt(mean + Float(args.eps));
    std::uint32_t begin = 0, end = columns;
    if (args.parts > 1) {
      begin = static_cast<std::uint32_t>(warp.index() % args.parts) * kNormPart;
      if (columns - begin > kNormPart) end = begin + kNormPart;
    }
    for (; begin < end; begin += kAtOnce * 32) {
      Float v[kAtOnce], weight[kAtOnce];
      SLUICE_GPU_UNROLL
      for (std::uint32_t i = 0; i < kAtOnce; ++i) {
        const Word at = Word(begin + 32 * i) + lane;
        const auto mask = at < Word(end);
        v[i] = warp.load_if(mask, x, at, Float(0.0f));
        weight[i] = warp.load_if(mask, args.weight, at, Float(0.0f));
      }
      SLUICE_GPU_UNROLL
      for (std::uint32_t i = 0; i < kAtOnce; ++i) {
        const Word at = Word(begin + 32 * i) + lane;
        warp.store_if(at < Word(end), y, at, v[i] * factor * weight[i]);
      }
    }
  }

 private:
  static constexpr std::uint32_t kAtOnce = 8;
};

}  // namespace sluice::kernels::gpu
