// Products with packed planes on a GPU: a warp decodes a group of eight rows in registers and multiplies,
// in the order of matmul.h.
#pragma once

#include "kernels/gpu/products/packed_group-inl.h"
#include "kernels/gpu/products/packed_words-inl.h"
#include "kernels/gpu/products/product-inl.h"

namespace sluice::kernels::gpu {

template <int T, bool kAligned>
struct PackedKernel {
  using Args = ProductItems;
  static constexpr std::uint32_t kShared = 2048;
  static constexpr std::uint32_t kRows = 8;
  static constexpr int kBlocks = T == 1 ? 3 : T < 8 ? 2 : 1;

  SLUICE_GPU_HOST static constexpr ProductTiles tiles(const ProductItem& item) {
    return {ceil_div(item.rows * item.row_step, kRows), ceil_div(item.tokens, T)};
  }

  template <class Warp>
  static SLUICE_GPU void run(const Warp& warp, const Args& args) {
    using Float = typename Warp::Float;
    using Word = typename Warp::Word;
    static_assert(PackedGroupReader<Warp, kAligned>::kShared == kShared);
    const ProductItem& item = item_of(args, warp.index());
    const ProductTiles all = tiles(item);
    const auto index = static_cast<std::uint32_t>(warp.index() - item.first_warp);
    const std::uint32_t group = all.row_tile(index), token = all.token_tile(index) * T;
    if (group >= all.rows || token >= item.tokens) return;
    // With rows of gate and up by turns, both are in this group.
    const bool by_turns = item.row_step == 2;
    const std::uint32_t sides = is_paired(item.form) && !by_turns ? 2 : 1;
    Float a[T], b[T];
    bool sound = true;
    SLUICE_GPU_LOOP
    for (std::uint32_t side = 0; side < sides; ++side) {
      sound = sums_of(warp, args, item, item.sides[side], group, token, b) && sound;
      if (side == 0) {
        SLUICE_GPU_UNROLL
        for (int t = 0; t < T; ++t) a[t] = b[t];
      }
    }
    if (by_turns) {
      SLUICE_GPU_UNROLL
      for (int t = 0; t < T; ++t) b[t] = warp.shuffle(a[t], warp.lane() + Word(4));
    }
    if (!sound) {
      warp.store_if(warp.lane() == Word(0), args.fault, Word(0), Word(1));
      return;
    }
    const std::uint32_t outputs = kRows / item.row_step, first = group * outputs;
    const Word on = warp.lane() / Word(4 * item.row_step);
    const auto mask = warp.lane() % Word(4 * item.row_step) == Word(0) && on < Word(item.rows - first);
    SLUICE_GPU_UNROLL
    for (int t = 0; t < T; ++t) {
      if (token + t >= item.tokens) break;
      put_output(warp, item, first, on, token + t, mask, a[t], b[t]);
      if (item.form != ProductForm::kPlain && first + outputs >= item.rows) put_end(warp, item, token + t);
    }
  }

 private:
  // The sums of a group of eight rows; four lanes have those of a row.
  template <class Warp>
  static SLUICE_GPU bool sums_of(const Warp& warp, const Args& args, const ProductItem& item,
                                 const ProductSide& side, std::uint32_t group, std::uint32_t token,
                                 typename Warp::Float (&result)[T]) {
    using Float = typename Warp::Float;
    using Word = typename Warp::Word;
    using Bytes16 = typename Warp::template Words<4>;
    const PackedChunk* chunk = args.chunks + side.first_chunk;
    while (group >= chunk[1].first_group) ++chunk;
    const std::uint32_t blocks = ceil_div(item.columns, 64);
    PackedGroupReader<Warp, kAligned> reader(warp, *chunk, group - chunk->first_group, blocks,
                                             side.planes[0] + std::uint64_t{group} * blocks * 512);
    const float* x[T];
    Float sums[T][4];
    SLUICE_GPU_UNROLL
    for (int t = 0; t < T; ++t) {
      const std::uint32_t of = token + t < item.tokens ? token + t : item.tokens - 1;
      x[t] = item.x + std::uint64_t{of} * arranged_columns(item.columns);
      SLUICE_GPU_UNROLL
      for (int i = 0; i < 4; ++i) sums[t][i] = Float(0.0f);
    }
    const Word four = warp.lane() % Word(4) * Word(4);
    for (std::uint32_t block = 0; block < blocks; ++block) {
      Bytes16 exponents, sign_mantissas;
      if (!reader.next(exponents, sign_mantissas)) return false;
      SLUICE_GPU_UNROLL
      for (int half = 0; half < 2; ++half) {
        Float even[4], odd[4];
        SLUICE_GPU_UNROLL
        for (int i = 0; i < 4; ++i) {
          const int word = 2 * half + i / 2;
          const Word pair =
              two_words(warp, exponents.of[word], sign_mantissas.of[word], i % 2 == 0 ? kLowPair : kHighPair);
          even[i] = warp.number(pair << Word(16));
          odd[i] = warp.number(pair & Word(0xffff0000u));
        }
        SLUICE_GPU_UNROLL
        for (int t = 0; t < T; ++t) {
          const float* const here = x[t] + std::size_t{block} * 64 + 32 * half;
          const auto x_even = load_four(warp, here, four), x_odd = load_four(warp, here + 16, four);
          SLUICE_GPU_UNROLL
          for (int i = 0; i < 4; ++i) {
            sums[t][i] = warp.fma(even[i], x_even.of[i], sums[t][i]);
            sums[t][i] = warp.fma(odd[i], x_odd.of[i], sums[t][i]);
          }
        }
      }
    }
    SLUICE_GPU_UNROLL
    for (int t = 0; t < T; ++t) result[t] = sum_lanes(warp, sums[t]);
    return reader.is_sound();
  }

  template <class Warp>
  static SLUICE_GPU typename Warp::template Floats<4> load_four(const Warp& warp, const float* p,
                                                                typename Warp::Word at) {
    if constexpr (kAligned) {
      return warp.template load_floats<4>(p, at);
    } else {
      typename Warp::template Floats<4> four;
      for (std::uint32_t i = 0; i < 4; ++i) four.of[i] = warp.load(p + i, at);
      return four;
    }
  }
};

}  // namespace sluice::kernels::gpu
