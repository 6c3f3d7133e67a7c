// Weighted sums of rows on a GPU: tokens side by side, the sums of each in their order.
#pragma once

#include <cstdint>

#include "kernels/gpu/dense/combined_sums.h"
#include "kernels/gpu/dense/row_part-inl.h"
#include "kernels/gpu/warp.h"

namespace sluice::kernels::gpu {

struct CombineRowsKernel {
  struct Args {
    const float* rows;
    float* to;
    const WeightedSource* sources;
    const CombinedToken* tokens;  // and one behind the last
    std::uint64_t columns;
  };
  template <class Warp>
  static SLUICE_GPU void run(const Warp& warp, const Args& args) {
    using Float = typename Warp::Float;
    const RowPart part = RowPart::of(warp.index(), args.columns);
    const CombinedToken token = args.tokens[part.row];
    const std::uint32_t end = args.tokens[part.row + 1].begin;
    float* const to = args.to + token.token * args.columns + part.begin;
    Float sums[kPartNumbers / 32];
    int n = 0;
    each_number(warp, part, [&](auto at, auto mask) { sums[n++] = warp.load_if(mask, to, at, Float(0.0f)); });
    for (std::uint32_t s = token.begin; s < end; ++s) {
      const WeightedSource source = args.sources[s];
      const float* const row = args.rows + source.row * args.columns + part.begin;
      n = 0;
      each_number(warp, part, [&](auto at, auto mask) {
        sums[n] = warp.fma(Float(source.weight), warp.load_if(mask, row, at, Float(0.0f)), sums[n]);
        ++n;
      });
    }
    n = 0;
    each_number(warp, part, [&](auto at, auto mask) { warp.store_if(mask, to, at, sums[n++]); });
  }
};

}  // namespace sluice::kernels::gpu
