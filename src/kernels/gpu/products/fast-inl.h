// Products with BF16 words by a GPU's units for matrices: activations are rounded to BF16, and the
// products of 16 columns are summed in an order of the unit's own. Bits are not those of matmul.h; but each
// output is made by the same steps, however a launch is cut up and whatever else is multiplied in it.
#pragma once

#include "kernels/gpu/products/product-inl.h"
#include "kernels/gpu/products/word_rows-inl.h"

namespace sluice::kernels::gpu {

// A warp has R tiles of 16 rows, or of 8 rows of each of two sides, by T tiles of 8 tokens. Lane 4g + t of a
// tile reads rows g and g + 8, or row g of either side, and multiplies with token g; it has the outputs of
// these rows for tokens 2t and 2t + 1. Which columns of a half a unit takes together follows from how lanes
// read: 8t … 8t + 3, then 8t + 4 … 8t + 7, of each t.
template <int R, int T>
struct FastKernel {
  using Args = ProductItems;
  static constexpr int kBlocks = R * T <= 4 ? 2 : 1;
  static constexpr int kHalves = T == 1 ? 8 / R : (R == 1 ? 4 : R == 2 ? 2 : 1);  // read before they are used

  SLUICE_GPU_HOST static constexpr std::uint32_t rows(ProductForm form) {
    return static_cast<std::uint32_t>(is_paired(form) ? 8 * R : 16 * R);
  }
  SLUICE_GPU_HOST static constexpr ProductTiles tiles(const ProductItem& item) {
    return {ceil_div(item.rows, rows(item.form)), ceil_div(item.tokens, 8 * T)};
  }

  template <class Warp>
  static SLUICE_GPU void run(const Warp& warp, const Args& args) {
    const ProductItem& item = item_of(args, warp.index());
    const ProductTiles all = tiles(item);
    const auto index = static_cast<std::uint32_t>(warp.index() - item.first_warp);
    const std::uint32_t row_tile = all.row_tile(index), token_tile = all.token_tile(index);
    if (row_tile < all.rows && token_tile < all.tokens)
      Sums<Warp>(warp, item, row_tile * rows(item.form), token_tile * 8 * T).compute();
  }

 private:
  template <class Warp>
  class Sums {
   public:
    using Float = typename Warp::Float;
    using Word = typename Warp::Word;
    using Row = WordRow<DType::kBF16, Warp, 4>;
    using Raw = typename Row::Raw;

    SLUICE_GPU Sums(const Warp& warp, const ProductItem& item, std::uint32_t first, std::uint32_t token)
        : warp_(warp),
          item_(item),
          first_(first),
          token_(token),
          group_(warp.lane() / Word(4)),
          thread_(warp.lane() % Word(4)) {
      const std::uint32_t floats = arranged_columns(item.columns);
      const Word last(item.tokens - 1 - token);
      SLUICE_GPU_UNROLL
      for (int t = 0; t < T; ++t) {
        const Word of = Word(static_cast<std::uint32_t>(8 * t)) + group_;
        x_at_[t] = warp.select(of < last, of, last) * Word(floats) + thread_ * Word(4);
        SLUICE_GPU_UNROLL
        for (int r = 0; r < R; ++r) {
          SLUICE_GPU_UNROLL
          for (int i = 0; i < 4; ++i) sums_[r][t][i] = Float(0.0f);
        }
      }
    }

    SLUICE_GPU void compute() {
      if constexpr (R == 1) {
        const Tile tiles[1] = {tile(0)};
        multiply(tiles);
      } else if constexpr (R == 2) {
        const Tile tiles[2] = {tile(0), tile(1)};
        multiply(tiles);
      } else {
        static_assert(R == 4);
        const Tile tiles[4] = {tile(0), tile(1), tile(2), tile(3)};
        multiply(tiles);
      }
      put();
    }

   private:
    struct Tile {
      Row low, high;
    };
    // What a lane reads of a tile in a half.
    struct Weights {
      Raw low, high;
    };

    // Output of the tile that the lane reads, as a place behind the first of the warp.
    SLUICE_GPU Word output(int r, bool high) const {
      const bool paired = is_paired(item_.form);
      return Word(static_cast<std::uint32_t>(paired ? 8 * r : 16 * r + (high ? 8 : 0))) + group_;
    }
    SLUICE_GPU Row row(int r, bool high) const {
      const Word most(item_.rows - 1 - first_), on = output(r, high);
      return Row(warp_, item_, item_.sides[high && is_paired(item_.form) ? 1 : 0],
                 std::uint64_t{first_} * item_.row_step,
                 warp_.select(on < most, on, most) * Word(item_.row_step), thread_);
    }
    SLUICE_GPU Tile tile(int r) const { return {row(r, false), row(r, true)}; }

    SLUICE_GPU void multiply(const Tile (&tiles)[R]) {
      const std::uint32_t full = item_.columns / 32, halves = arranged_columns(item_.columns) / 32;
      std::uint32_t half = 0;
      SLUICE_GPU_LOOP
      for (; half + kHalves <= full; half += kHalves) add<kHalves>(tiles, half);
      SLUICE_GPU_LOOP
      for (; half < full; ++half) add<1>(tiles, half);
      SLUICE_GPU_LOOP
      for (; half < halves; ++half) {
        Weights weights[R];
        SLUICE_GPU_UNROLL
        for (int r = 0; r < R; ++r)
          weights[r] = {last_words(tiles[r].low, half), last_words(tiles[r].high, half)};
        add_half(weights, half);
      }
    }

    SLUICE_GPU Raw last_words(const Row& row, std::uint32_t half) const {
      Float even[4], odd[4];
      row.last_numbers(warp_, half, even, odd);
      Raw words;
      SLUICE_GPU_UNROLL
      for (int i = 0; i < 4; ++i) words.of[i] = warp_.bf16_pair(even[i], odd[i]);
      return words;
    }

    template <int N>
    SLUICE_GPU void add(const Tile (&tiles)[R], std::uint32_t half) {
      Weights weights[N][R];
      SLUICE_GPU_UNROLL
      for (int n = 0; n < N; ++n) {
        SLUICE_GPU_UNROLL
        for (int r = 0; r < R; ++r)
          weights[n][r] = {tiles[r].low.load(warp_, half + n), tiles[r].high.load(warp_, half + n)};
      }
      warp_.sync();  // all of these are asked for before the first is used
      SLUICE_GPU_UNROLL
      for (int n = 0; n < N; ++n) add_half(weights[n], half + n);
    }

    SLUICE_GPU void add_half(const Weights (&weights)[R], std::uint32_t half) {
      const float* const here = item_.x + std::uint64_t{token_} * arranged_columns(item_.columns) + half * 32;
      SLUICE_GPU_UNROLL
      for (int t = 0; t < T; ++t) {
        const auto even = warp_.template load_floats<4>(here, x_at_[t]),
                   odd = warp_.template load_floats<4>(here + 16, x_at_[t]);
        Word x[4];
        SLUICE_GPU_UNROLL
        for (int i = 0; i < 4; ++i) x[i] = warp_.bf16_pair(even.of[i], odd.of[i]);
        SLUICE_GPU_UNROLL
        for (int r = 0; r < R; ++r) {
          const Weights& w = weights[r];
          warp_.add_tile(sums_[r][t], {w.low.of[0], w.high.of[0], w.low.of[1], w.high.of[1]}, {x[0], x[1]});
          warp_.add_tile(sums_[r][t], {w.low.of[2], w.high.of[2], w.low.of[3], w.high.of[3]}, {x[2], x[3]});
        }
      }
    }

    SLUICE_GPU void put() {
      const bool paired = is_paired(item_.form);
      const Word last_row(item_.rows - 1 - first_), tokens(item_.tokens - token_);
      SLUICE_GPU_UNROLL
      for (int t = 0; t < T; ++t) {
        SLUICE_GPU_UNROLL
        for (std::uint32_t i = 0; i < 2; ++i) {
          const Word later = Word(static_cast<std::uint32_t>(8 * t) + i) + thread_ * Word(2);
          const auto there = later < tokens;
          SLUICE_GPU_UNROLL
          for (int r = 0; r < R; ++r) {
            const Float low = sums_[r][t][i], high = sums_[r][t][2 + i];
            const Word on = output(r, false);
            put_output(warp_, item_, first_, on, token_, there && on <= last_row, low, high, later);
            if (paired) continue;
            const Word other = output(r, true);
            put_output(warp_, item_, first_, other, token_, there && other <= last_row, high, high, later);
          }
        }
      }
      if (item_.form == ProductForm::kPlain || first_ + rows(item_.form) < item_.rows) return;
      SLUICE_GPU_LOOP
      for (std::uint32_t token = token_; token < token_ + 8 * T && token < item_.tokens; ++token)
        put_end(warp_, item_, token);
    }

    const Warp& warp_;
    const ProductItem& item_;
    const std::uint32_t first_, token_;
    const Word group_, thread_;
    Word x_at_[T];
    Float sums_[R][T][4];
  };
};

}  // namespace sluice::kernels::gpu
