// rope() on a GPU.
#pragma once

#include <cstdint>

#include "kernels/elementwise/elementwise.h"
#include "kernels/gpu/warp.h"

namespace sluice::kernels::gpu {

// Pairs of a head at most, and parts of 32 of them.
inline constexpr std::uint32_t kMostRopePairs = 1024, kMostRopeParts = kMostRopePairs / 32;

struct RopeArgs {
  float* x;
  const float* cos;
  const float* sin;
  std::uint64_t token_stride, heads, head_stride;
  std::uint32_t half;
};

// A pair, turned.
template <class Warp>
struct RotatedPair {
  typename Warp::Float first, second;
  static SLUICE_GPU RotatedPair make(typename Warp::Float a, typename Warp::Float b, typename Warp::Float cos,
                                     typename Warp::Float sin) {
    return {a * cos - b * sin, b * cos + a * sin};
  }
};

// A warp turns 32 pairs, each lane one.
struct RopeHalfKernel {
  using Args = RopeArgs;
  template <class Warp>
  static SLUICE_GPU void run(const Warp& warp, const Args& args) {
    using Float = typename Warp::Float;
    using Word = typename Warp::Word;
    const std::uint32_t parts = (args.half + 31) / 32;
    const std::uint64_t head = warp.index() / parts, token = head / args.heads;
    float* const x = args.x + token * args.token_stride + head % args.heads * args.head_stride;
    const Word at = Word(static_cast<std::uint32_t>(warp.index() % parts) * 32) + warp.lane();
    const auto mask = at < Word(args.half);
    const auto pair = RotatedPair<Warp>::make(
        warp.load_if(mask, x, at, Float(0.0f)), warp.load_if(mask, x + args.half, at, Float(0.0f)),
        warp.load_if(mask, args.cos + token * args.half, at, Float(0.0f)),
        warp.load_if(mask, args.sin + token * args.half, at, Float(0.0f)));
    warp.store_if(mask, x, at, pair.first);
    warp.store_if(mask, x + args.half, at, pair.second);
  }
};

// A warp turns a head: results lie where other pairs were, so all are read before. kParts · 32 pairs at most.
template <std::uint32_t kParts>
struct RopeInterleavedKernel {
  using Args = RopeArgs;
  template <class Warp>
  static SLUICE_GPU void run(const Warp& warp, const Args& args) {
    using Float = typename Warp::Float;
    using Word = typename Warp::Word;
    const std::uint64_t head = warp.index(), token = head / args.heads;
    float* const x = args.x + token * args.token_stride + head % args.heads * args.head_stride;
    RotatedPair<Warp> pairs[kParts];
    SLUICE_GPU_UNROLL
    for (std::uint32_t i = 0; i < kParts; ++i) {
      const Word at = Word(32 * i) + warp.lane();
      const auto mask = at < Word(args.half);
      pairs[i] = RotatedPair<Warp>::make(warp.load_if(mask, x, at + at, Float(0.0f)),
                                         warp.load_if(mask, x + 1, at + at, Float(0.0f)),
                                         warp.load_if(mask, args.cos + token * args.half, at, Float(0.0f)),
                                         warp.load_if(mask, args.sin + token * args.half, at, Float(0.0f)));
    }
    warp.sync();
    SLUICE_GPU_UNROLL
    for (std::uint32_t i = 0; i < kParts; ++i) {
      const Word at = Word(32 * i) + warp.lane();
      const auto mask = at < Word(args.half);
      warp.store_if(mask, x, at, pairs[i].first);
      warp.store_if(mask, x + args.half, at, pairs[i].second);
    }
  }
};

}  // namespace sluice::kernels::gpu
